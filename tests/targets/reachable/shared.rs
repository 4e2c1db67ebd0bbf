// SPDX-License-Identifier: GPL-3.0-or-later
//! Has blocks of Rust's containers, some of which are lost, and ends by exit(3) with the others in use. What can be reached
//! is what valgrind's memcheck says of it.
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::{Rc, Weak};
use std::sync::{mpsc, Arc, Mutex};
use std::thread;

/// The same at each run, unlike the standard one's.
#[derive(Default)]
struct Sum(u64);

impl Hasher for Sum {
    fn finish(&self) -> u64 {
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.wrapping_mul(31).wrapping_add(u64::from(*byte));
        }
    }
}

type Table = HashMap<String, Vec<String>, BuildHasherDefault<Sum>>;

struct Node {
    text: String,
    next: RefCell<Option<Rc<Node>>>,
    back: RefCell<Weak<Node>>,
}

fn node(text: usize) -> Rc<Node> {
    Rc::new(Node { text: "n".repeat(text), next: RefCell::new(None), back: RefCell::new(Weak::new()) })
}

#[inline(never)]
fn cycle(size: usize) {
    // From one stack, since either of them may be the one that counts as lost.
    let nodes: Vec<_> = (0..2).map(|_| node(size)).collect();
    let (first, second) = (&nodes[0], &nodes[1]);
    *first.next.borrow_mut() = Some(second.clone());
    *second.next.borrow_mut() = Some(first.clone());
    *second.back.borrow_mut() = Rc::downgrade(first);
    assert_eq!(first.text.len(), size);
}

#[inline(never)]
fn forget() {
    std::mem::forget(vec![String::from("a"), "b".repeat(100)]);
    std::mem::forget(Box::new([7u64; 20]));
}

#[inline(never)]
fn leak() -> &'static mut Vec<String> {
    Box::leak(Box::new((0..10).map(|n| "leaked".repeat(n)).collect()))
}

#[inline(never)]
fn fill() -> Table {
    let mut table = Table::default();
    for n in 0..200 {
        table.entry(format!("key {}", n % 40)).or_default().push(format!("value {n}"));
    }
    table
}

/// Traits' objects, and what has other layouts than C's.
#[allow(dead_code)]
struct Kept {
    table: Table,
    ordered: BTreeMap<u32, String>,
    queue: VecDeque<Box<u64>>,
    objects: Vec<Box<dyn Fn() -> usize>>,
    shared: Arc<Mutex<Vec<Arc<str>>>>,
    options: [Option<Box<u64>>; 4],
    graph: Rc<Node>,
    empty: Vec<u64>,
}

#[inline(never)]
fn across_threads() -> Arc<Mutex<Vec<Arc<str>>>> {
    let shared = Arc::new(Mutex::new(Vec::new()));
    let (sender, receiver) = mpsc::channel();
    // One after the other, so that each run does the same.
    for n in 0..4usize {
        let (shared, sender) = (shared.clone(), sender.clone());
        thread::spawn(move || {
            shared.lock().unwrap().push(Arc::from("s".repeat(n * 10 + 1)));
            sender.send(Box::new(n)).unwrap();
        })
        .join()
        .unwrap();
    }
    drop(sender);
    assert_eq!(receiver.iter().map(|n| *n).sum::<usize>(), 6);
    shared
}

#[inline(never)]
fn keep() -> Box<Kept> {
    let graph = node(30);
    *graph.next.borrow_mut() = Some(node(31));
    let text = "captured".repeat(5);
    Box::new(Kept {
        table: fill(),
        ordered: (0..100).map(|n| (n, format!("number {n}"))).collect(),
        queue: (0..30).map(Box::new).collect(),
        objects: vec![Box::new(|| 1), Box::new(move || text.len())],
        shared: across_threads(),
        options: [None, Some(Box::new(1)), None, Some(Box::new(2))],
        graph,
        empty: Vec::new(),
    })
}

static mut KEPT: Option<Box<Kept>> = None;
static mut LEAKED: Option<&'static mut Vec<String>> = None;

#[inline(never)]
fn clear_stack() -> u8 {
    let mut bytes = [1u8; 32 << 10];
    for byte in bytes.iter_mut() {
        unsafe { std::ptr::write_volatile(byte, 0) };
    }
    bytes[100]
}

fn main() {
    cycle(50);
    forget();
    leak();
    // The stacks of threads that have ended are not cleared, so the threads do not meet addresses of lost blocks.
    unsafe {
        LEAKED = Some(leak());
        KEPT = Some(keep());
    }
    std::process::exit(i32::from(clear_stack()));
}
