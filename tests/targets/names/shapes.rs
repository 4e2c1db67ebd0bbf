// SPDX-License-Identifier: GPL-3.0-or-later
//! Allocations whose stacks have the names that Rust makes: of closures, generics, trait objects,
//! implementations, containers that grow, a panic. Above start-up malloc or realloc is called once for
//! each of these sizes, through these functions of the program, outermost first, by their last names;
//! what is in brackets is inlined. The standard library's functions stand between and behind them.
//!
//!   1001 bytes: main;plain_box
//!   1100 bytes: main;inlined_new;[with_room;obtain]
//!   1201 bytes: main;call_closure;run;{closure};[obtain]
//!   1202 bytes: main;call_closure;run_boxed;{closure};[obtain]
//!   1301 bytes: main;generic;measured;[obtain]
//!   1302 bytes: main;generic;measured;[obtain]
//!   1401 bytes: main;trait_object;draw;[obtain]
//!   1402 bytes: main;trait_object;erase;[obtain]
//!   1501 bytes: main;inside;[obtain]
//!   1600 bytes: main;vec_growth
//!   1701 bytes: main;string_made
//!   1801 bytes: main;panics;fails;[obtain]
//!   1901 bytes: main;dropped;drop;[obtain]
//!   3200 bytes: main;vec_growth
//!   10000 to 20000 bytes: main;map_growth
//!
//! Prints nothing, exit status 0.
use std::collections::HashMap;
use std::panic;

/// What the compiler cannot follow it does not leave out. (The one of std::hint is younger.)
#[inline(never)]
fn black_box<T>(value: T) -> T {
    let copy = unsafe { std::ptr::read_volatile(&value) };

    std::mem::forget(value);
    copy
}

#[inline(never)]
fn take(block: Vec<u8>) {
    black_box(&block);
}

/// A call that is the last thing done would leave no frame.
#[inline(always)]
fn stay() {
    black_box(0u8);
}

#[inline(always)]
fn obtain(size: usize) -> Vec<u8> {
    Vec::with_capacity(size)
}

struct Buffer<T> {
    data: Vec<u8>,
    first: T,
}

impl<T: Copy> Buffer<T> {
    #[inline(always)]
    fn with_room(first: T, size: usize) -> Self {
        Buffer { data: obtain(size), first }
    }
}

#[inline(never)]
fn plain_box() {
    black_box(Box::new([0u8; 1001]));
}

#[inline(never)]
fn inlined_new() {
    let buffer = Buffer::with_room(black_box(5u64), 1100);

    black_box(buffer.first);
    take(buffer.data);
}

#[inline(never)]
fn run<F: Fn(usize) -> Vec<u8>>(function: F) {
    take(function(black_box(1)));
}

#[inline(never)]
fn run_boxed(function: Box<dyn Fn(usize) -> Vec<u8>>) {
    take(function(black_box(2)));
}

#[inline(never)]
fn call_closure(base: usize) {
    run(
        #[inline(never)]
        |n| obtain(base + n),
    );
    run_boxed(black_box(Box::new(move |n| obtain(base + n))));
    stay();
}

#[inline(never)]
fn measured<T: Copy>(_: T, base: usize) {
    take(obtain(base + std::mem::size_of::<T>()));
    stay();
}

#[inline(never)]
fn generic() {
    measured(0u8, black_box(1300));
    measured(0u16, black_box(1300));
    stay();
}

trait Shape {
    fn draw(&self, size: usize);

    #[inline(never)]
    fn erase(&self, size: usize) {
        take(obtain(size + 1));
        stay();
    }
}

struct Circle;

impl Shape for Circle {
    #[inline(never)]
    fn draw(&self, size: usize) {
        take(obtain(size));
        stay();
    }
}

#[inline(never)]
fn trait_object(shape: &dyn Shape) {
    shape.draw(black_box(1401));
    shape.erase(black_box(1401));
    stay();
}

mod nested {
    pub mod deep {
        #[inline(never)]
        pub fn inside() {
            crate::take(crate::obtain(crate::black_box(1501)));
            crate::stay();
        }
    }
}

#[inline(never)]
fn vec_growth() {
    let mut list: Vec<[u8; 1600]> = Vec::with_capacity(1);

    for n in 0..2 {
        list.push([black_box(n); 1600]);
    }
    black_box(&list);
}

#[inline(never)]
fn string_made() {
    let mut text = String::with_capacity(black_box(1701));

    text.push_str("text");
    black_box(&text);
}

#[inline(never)]
fn fails() {
    take(obtain(black_box(1801)));
    panic!("on purpose");
}

#[inline(never)]
fn panics() {
    panic::set_hook(Box::new(|_| {}));
    assert!(panic::catch_unwind(fails).is_err());
}

struct Late;

impl Drop for Late {
    #[inline(never)]
    fn drop(&mut self) {
        take(obtain(black_box(1901)));
        stay();
    }
}

#[inline(never)]
fn dropped() {
    black_box(Late);
    stay();
}

#[inline(never)]
fn map_growth() {
    let mut map: HashMap<u32, [u8; 3000]> = HashMap::new();

    map.insert(black_box(1), [2; 3000]);
    black_box(&map);
    stay();
}

fn main() {
    plain_box();
    inlined_new();
    call_closure(black_box(1200));
    generic();
    trait_object(black_box(&Circle));
    nested::deep::inside();
    vec_growth();
    string_made();
    panics();
    dropped();
    map_growth();
    stay();
}
