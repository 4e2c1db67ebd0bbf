// SPDX-License-Identifier: GPL-3.0-or-later
//! Asynchronous work by 4 threads, as tests/targets/tasks.cpp has it, by the crate of bindings/rust: 1,000 futures, among others that
//! are not measured. Each holds what allocprof has read of it to what it knows itself, and the sums are printed as regions.h does.
use allocprof::{Figures, Unread};
use std::alloc::{alloc, dealloc, realloc, Layout};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

const TASKS: usize = 1000;
const OTHERS: usize = 250;
const THREADS: usize = 4;
const STEPS: usize = 6;

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
    shrunk: u64,
}

impl Own {
    fn add(&mut self, other: &Own) {
        self.entered += other.entered;
        self.allocations += other.allocations;
        self.reallocations += other.reallocations;
        self.deallocations += other.deallocations;
        self.asked += other.asked;
        self.allocated += other.allocated;
        self.grown += other.grown;
        self.freed += other.freed;
        self.shrunk += other.shrunk;
    }
}

type Known = Arc<Mutex<Own>>;

/// A block that says when it is freed, wherever that is.
struct Block {
    address: *mut u8,
    size: usize,
    own: Known,
}

unsafe impl Send for Block {}

/// The value, of which the compiler knows nothing: std::hint::black_box() is of Rust 1.66.
fn opaque<T>(value: T) -> T {
    let value = std::mem::ManuallyDrop::new(value);
    unsafe { std::ptr::read_volatile(&*value) }
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 1).unwrap()
}

impl Block {
    fn new(own: &Known, size: usize) -> Block {
        let mut known = own.lock().unwrap();
        known.allocations += 1;
        known.asked += size as u64;
        known.allocated += size as u64;
        Block { address: opaque(unsafe { alloc(layout(size)) }), size, own: own.clone() }
    }

    fn resize(&mut self, size: usize) {
        let mut known = self.own.lock().unwrap();
        known.reallocations += 1;
        known.asked += size as u64;
        known.grown += size.saturating_sub(self.size) as u64;
        known.shrunk += self.size.saturating_sub(size) as u64;
        self.address = opaque(unsafe { realloc(self.address, layout(self.size), size) });
        self.size = size;
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let mut known = self.own.lock().unwrap();
        known.deallocations += 1;
        known.freed += self.size as u64;
        unsafe { dealloc(self.address, layout(self.size)) };
    }
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

#[cfg(not(feature = "tokio"))]
mod executor {
    use super::{opaque, Work, THREADS};
    use std::collections::VecDeque;
    use std::sync::{Arc, Condvar, Mutex};
    use std::task::{Context, Wake, Waker};

    struct Executor {
        queue: Mutex<(VecDeque<Arc<Job>>, usize)>,
        changed: Condvar,
    }

    struct Job {
        // None: it has ended.
        future: Mutex<Option<Work>>,
        executor: Arc<Executor>,
    }

    impl Executor {
        fn push(&self, job: Arc<Job>) {
            self.queue.lock().unwrap().0.push_back(job);
            self.changed.notify_one();
        }

        fn next(&self) -> Option<Arc<Job>> {
            let mut queue = self.queue.lock().unwrap();
            while queue.0.is_empty() && queue.1 > 0 {
                queue = self.changed.wait(queue).unwrap();
            }
            queue.0.pop_front()
        }

        fn run(&self) {
            while let Some(job) = self.next() {
                // Its own allocations are in no task.
                drop(opaque(vec![0u8; 77]));
                let mut future = job.future.lock().unwrap();
                let waker = Waker::from(job.clone());
                let is_ready = match future.as_mut() {
                    Some(running) => running.as_mut().poll(&mut Context::from_waker(&waker)).is_ready(),
                    None => false,
                };
                if is_ready {
                    *future = None;
                    self.queue.lock().unwrap().1 -= 1;
                    self.changed.notify_all();
                }
            }
        }
    }

    impl Wake for Job {
        fn wake(self: Arc<Self>) {
            self.executor.clone().push(self);
        }
    }

    pub fn run_all(all: Vec<Work>) {
        let n = all.len();
        // With room, since a task's own waker pushes it.
        let executor = Arc::new(Executor { queue: Mutex::new((VecDeque::with_capacity(2 * n), n)), changed: Condvar::new() });
        for work in all {
            executor.push(Arc::new(Job { future: Mutex::new(Some(work)), executor: executor.clone() }));
        }
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let executor = executor.clone();
                std::thread::spawn(move || executor.run())
            })
            .collect();
        for thread in threads {
            thread.join().expect("a task has read other figures than its own");
        }
    }
}

#[cfg(feature = "tokio")]
mod executor {
    use super::{Work, THREADS};

    pub fn run_all(all: Vec<Work>) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).build().unwrap();
        let all: Vec<_> = all.into_iter().map(|work| runtime.spawn(work)).collect();
        runtime.block_on(async {
            for task in all {
                task.await.expect("a task has read other figures than its own");
            }
        });
    }
}

/// Is ready when it is polled again, in any thread.
struct Elsewhere(bool);

impl Future for Elsewhere {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        // Maybe it is polled before this returns.
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Polls once, and is ready.
struct Once<'a, F>(Pin<&'a mut F>);

impl<F: Future> Future for Once<'_, F> {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<bool> {
        Poll::Ready(self.0.as_mut().poll(context).is_ready())
    }
}

async fn inner(own: Known) {
    let _block = Block::new(&own, 20);
    Elsewhere(false).await;
}

async fn endless(own: Known) {
    let _block = Block::new(&own, 30);
    std::future::pending::<()>().await;
}

async fn task(own: Known, i: usize) {
    let mut held = Block::new(&own, 10 + i);
    for step in 1..STEPS {
        let block = Block::new(&own, step);
        Elsewhere(false).await;
        drop(block);
        held.resize(if step % 2 == 0 { i + step } else { 2000 + i });
    }
    // What is in both is in the outer one, and once in the region.
    let (_, reading) = allocprof::measured!("task", inner(own.clone())).await;
    match reading {
        Ok(figures) => assert_eq!((figures.allocations, figures.deallocations, figures.entered), (1, 1, 2)),
        Err(Unread::Nobody | Unread::Probes) => (),
        Err(why) => panic!("{}", why),
    }
    // A future that is dropped before its end.
    let mut endless = allocprof::measured!("task", endless(own.clone()));
    assert!(!Once(unsafe { Pin::new_unchecked(&mut endless) }).await);
    drop(endless);
}

/// What is read of a task is what it knows.
fn judge(own: &Own, figures: &Figures) {
    assert_eq!(figures.entered, STEPS as u64 + 1);
    assert_eq!(figures.allocations, own.allocations);
    assert_eq!(figures.reallocations, own.reallocations);
    assert_eq!(figures.deallocations, own.deallocations);
    assert_eq!(figures.live, 0);
    if figures.is_live {
        assert_eq!(figures.bytes_allocated, own.allocated + own.grown);
        assert_eq!(figures.bytes_deallocated, own.freed + own.shrunk);
        assert_eq!(figures.bytes_reallocated, own.grown as i64 - own.shrunk as i64);
        assert_eq!(figures.live_bytes, 0);
    } else {
        assert_eq!(figures.bytes_allocated as i64 + figures.bytes_reallocated, own.asked as i64);
    }
}

fn main() {
    let mut all: Vec<Work> = Vec::new();
    let sums = Arc::new(Mutex::new((Own::default(), 0, None)));
    for i in 0..TASKS {
        let (own, sums) = (Known::default(), sums.clone());
        all.push(Box::pin(async move {
            let (_, reading) = allocprof::measured!("task", task(own.clone(), i)).await;
            let own = *own.lock().unwrap();
            let mut sums = sums.lock().unwrap();
            sums.0.add(&own);
            // Of the inner ones two each: one is polled twice, one is polled and dropped.
            sums.0.entered += STEPS as u64 + 1 + 2 + 2;
            sums.1 += 1;
            sums.2 = Some(reading.map(|_| "read"));
            if let Ok(figures) = reading {
                judge(&own, &figures);
            }
        }));
    }
    for i in 0..OTHERS {
        all.push(Box::pin(async move {
            for _ in 0..STEPS {
                drop(opaque(vec![0u8; 1000 + i]));
                Elsewhere(false).await;
            }
        }));
    }
    executor::run_all(all);
    let sums = sums.lock().unwrap();
    let own = &sums.0;
    assert_eq!(sums.1, TASKS);
    println!("answer {:?}", sums.2.unwrap());
    println!(
        "task entered={} allocations={} reallocations={} deallocations={} asked={} allocated={} grown={} freed={} shrunk={}",
        own.entered, own.allocations, own.reallocations, own.deallocations, own.asked, own.allocated, own.grown, own.freed, own.shrunk
    );
}
