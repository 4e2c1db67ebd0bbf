// SPDX-License-Identifier: GPL-3.0-or-later
//! Marks regions by the crate of bindings/rust, as tests/targets/regions.c does in C: "nest", "recurse", "leave" or "panic". It says
//! what it allocated in each, as regions.h does, and what it read of it: "read NAME answer=N allocations=N ...".
use allocprof::{Reading, Unread};
use std::cell::{Cell, RefCell};

const NAMES: [&str; 3] = ["parse", "emit", "write"];

#[derive(Clone, Copy, Default)]
struct Own {
    entered: u64,
    allocations: u64,
    reallocations: u64,
    deallocations: u64,
    asked: u64,
    allocated: u64,
    grown: u64,
    freed: u64,
}

thread_local! {
    static OWN: RefCell<[Own; 3]> = RefCell::default();
    static INSIDE: Cell<[u32; 3]> = Cell::default();
}

fn add(what: impl Fn(&mut Own)) {
    OWN.with(|own| {
        let inside = INSIDE.with(Cell::get);
        own.borrow_mut().iter_mut().zip(inside).filter(|(_, n)| *n > 0).for_each(|(own, _)| what(own));
    });
}

struct Inside(usize);

impl Inside {
    fn change(&self, change: i32) {
        INSIDE.with(|inside| {
            let mut all = inside.get();
            all[self.0] = (all[self.0] as i32 + change) as u32;
            inside.set(all);
        });
    }

    fn new(region: usize) -> Inside {
        let inside = Inside(region);
        inside.change(1);
        OWN.with(|own| own.borrow_mut()[region].entered += 1);
        inside
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.change(-1);
    }
}

macro_rules! scope {
    ($name:literal, $number:literal) => {
        allocprof::region!($name);
        let _inside = Inside::new($number);
    };
}

#[inline(never)]
fn take(size: usize) -> Vec<u8> {
    add(|own| {
        own.allocations += 1;
        own.asked += size as u64;
        own.allocated += size as u64;
    });
    Vec::with_capacity(size)
}

#[inline(never)]
fn grow(block: &mut Vec<u8>, more: usize) {
    let before = block.capacity();
    block.resize(before, 0);
    block.reserve_exact(more);
    add(|own| {
        own.reallocations += 1;
        own.asked += (before + more) as u64;
        own.grown += more as u64;
    });
}

#[inline(never)]
fn give(block: Vec<u8>) {
    add(|own| {
        own.deallocations += 1;
        own.freed += block.capacity() as u64;
    });
}

#[inline(never)]
fn nest() {
    scope!("parse", 0);
    let block = take(10);
    {
        scope!("emit", 1);
        let mut inner = take(20);
        {
            scope!("write", 2);
            grow(&mut inner, 30);
        }
        give(inner);
    }
    {
        // The same within the same frame, twice.
        scope!("parse", 0);
        give(take(30));
        scope!("parse", 0);
        give(take(31));
    }
    give(take(40));
    give(block);
}

#[inline(never)]
fn recurse(depth: usize) {
    scope!("parse", 0);
    give(take(100 + depth));
    if depth > 0 {
        recurse(depth - 1);
    }
    give(take(200 + depth));
    {
        scope!("write", 2);
        if depth > 0 {
            recurse(depth - 1);
        }
    }
    give(take(300 + depth));
}

fn leave(how: usize) -> Option<usize> {
    scope!("parse", 0);
    give(take(1 + how));
    for i in 0..4 {
        scope!("emit", 1);
        give(take(10));
        match how {
            0 => return Some(i),
            1 => None?,
            2 => break,
            _ if i == 2 => continue,
            _ => give(take(20)),
        }
    }
    give(take(30));
    None
}

#[inline(never)]
fn unwind(depth: usize) {
    scope!("write", 2);
    let block = take(7);
    if depth > 0 {
        unwind(depth - 1);
    } else {
        // The exception's own block.
        add(|own| own.allocations += 1);
        std::panic::resume_unwind(Box::new(()));
    }
    give(block);
}

fn panics() {
    for i in 0..3 {
        assert!(std::panic::catch_unwind(|| unwind(i)).is_err());
        // The blocks that are dropped in unwinding.
        OWN.with(|own| own.borrow_mut()[2].deallocations += i as u64 + 1);
        give(take(1000));
        nest();
    }
}

fn print(name: &str, reading: Reading) {
    let (answer, figures) = match reading {
        Ok(figures) => (1 + figures.is_live as i32, figures),
        Err(Unread::Nobody) => (0, Default::default()),
        Err(Unread::Probes) => (-1, Default::default()),
        Err(Unread::NoRegions) => (-2, Default::default()),
        Err(Unread::Incomplete(figures)) => (-3, figures),
        Err(Unread::NotBegun) => (-4, Default::default()),
    };
    println!(
        "read {} answer={} allocations={} reallocations={} deallocations={} bytes_allocated={} bytes_reallocated={} bytes_deallocated={} \
         live={} live_bytes={} peak_bytes={} temporary={} temporary_bytes={} entered={}",
        name, answer, figures.allocations, figures.reallocations, figures.deallocations, figures.bytes_allocated,
        figures.bytes_reallocated, figures.bytes_deallocated, figures.live, figures.live_bytes, figures.peak_bytes, figures.temporary,
        figures.temporary_bytes, figures.entered
    );
}

fn main() {
    let way = std::env::args().nth(1).unwrap_or_default();
    let (_, figures) = allocprof::measure(|| match way.as_str() {
        "nest" => nest(),
        "recurse" => recurse(4),
        "leave" => (0..4).for_each(|how| {
            let _ = leave(how);
        }),
        _ => panics(),
    });
    let process = allocprof::read_process();
    let regions = NAMES.map(allocprof::read_region);
    print("thread", figures);
    print("process", process);
    for (name, reading) in NAMES.iter().zip(regions) {
        print(name, reading);
    }
    OWN.with(|own| {
        for (name, own) in NAMES.iter().zip(own.borrow().iter()).filter(|(_, own)| own.entered > 0) {
            println!(
                "{} entered={} allocations={} reallocations={} deallocations={} asked={} allocated={} grown={} freed={} shrunk=0",
                name, own.entered, own.allocations, own.reallocations, own.deallocations, own.asked, own.allocated, own.grown, own.freed
            );
        }
    });
}
