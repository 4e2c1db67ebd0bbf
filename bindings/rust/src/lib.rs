// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! Regions of a program whose allocations `allocprof stat` and `allocprof check` count apart, and figures that the program reads
//! itself: `include/allocprof.h` for Rust. It allocates nothing, has no dependencies, and there is nothing to link with. Unmeasured a
//! mark is a nop, a load and a branch. Where the target is not Linux on x86-64 marks are nothing, and nobody measures.
//!
//! ```
//! fn parse(text: &str) -> usize {
//!     allocprof::region!("parse"); // from here to the end of the scope
//!     text.split(' ').count()
//! }
//!
//! // What one test allocates, whatever others do meanwhile:
//! let (words, figures) = allocprof::measure(|| parse("one two three"));
//! assert_eq!(words, 3);
//! match figures {
//!     Ok(figures) => assert_eq!(figures.allocations, 0),
//!     Err(allocprof::Unread::Nobody) => (), // not run by `allocprof stat --engine=preload`
//!     Err(why) => panic!("{}", why),
//! }
//! ```
//!
//! A future, in whichever threads it is polled:
//!
//! ```
//! # async fn handle() {}
//! # fn spawn<F: std::future::Future>(_: F) {}
//! spawn(async {
//!     let (response, figures) = allocprof::measured!("request", handle()).await;
//! });
//! ```
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

/// What was counted. The words are those of `allocprof stat`, and `struct allocprof_figures` describes them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub allocations: u64,
    pub reallocations: u64,
    pub deallocations: u64,
    /// Unless [`is_live`](Figures::is_live) the bytes that allocations and reallocations asked for. With it
    /// reallocations count by what they add to blocks or take from them, and are in all three sums.
    pub bytes_allocated: u64,
    pub bytes_reallocated: i64,
    /// From here to `entered` they are 0 unless `is_live`, but for `live`.
    pub bytes_deallocated: u64,
    /// Negative where more was freed than allocated.
    pub live: i64,
    pub live_bytes: i64,
    /// For the process only.
    pub peak_bytes: u64,
    pub temporary: u64,
    pub temporary_bytes: u64,
    /// How often the region was begun, the future polled, or dropped before its end.
    pub entered: u64,
    /// Blocks are followed: `--live`, or `check`.
    pub is_live: bool,
}

/// Why there are no figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// Nobody measures this process.
    Nobody,
    /// Probes in the kernel count, which the program cannot read. `--engine=preload` counts where it can.
    Probes,
    /// This command counts no regions: `stat` and `check` do.
    NoRegions,
    /// Calls were missed, so that these figures may be too low.
    Incomplete(Figures),
    /// Nobody has begun a region of this name, as where the name is misspelt.
    NotBegun,
}

impl fmt::Display for Unread {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Unread::Nobody => "allocprof does not measure this process",
            Unread::Probes => "allocprof counts by probes, which the program cannot read: use --engine=preload",
            Unread::NoRegions => "this command of allocprof counts no regions: stat and check do",
            Unread::Incomplete(_) => "allocprof has missed calls, so the figures may be too low",
            Unread::NotBegun => "nobody has begun a region of this name",
        })
    }
}

impl std::error::Error for Unread {}

/// The figures, or why there are none.
pub type Reading = Result<Figures, Unread>;

/// Reads what all threads of this process have done in the region of this name so far.
pub fn read_region(name: &str) -> Reading {
    let (answer, figures) = ask(Some(name));
    reading(answer, figures)
}

/// Reads what all threads of this process have done so far.
pub fn read_process() -> Reading {
    let (answer, figures) = ask(None);
    reading(answer, figures)
}

/// Reads what the calling thread has done so far.
pub fn read_thread() -> Reading {
    read_region(THREAD)
}

/// Calls the function, and returns its result with what this thread has done in it.
pub fn measure<T>(function: impl FnOnce() -> T) -> (T, Reading) {
    let mut sum = Sum::default();
    sum.enter();
    let result = function();
    sum.leave();
    (result, sum.reading())
}

/// Begins the region, which ends with the scope.
///
/// What holds it over an `.await` is not `Send`: [`measured!`] is for futures. The name is a literal without a colon or braces.
#[macro_export]
macro_rules! region {
    ($name:literal) => {
        let _region = {
            struct Region(::core::marker::PhantomData<*const ()>);
            impl Drop for Region {
                #[inline(always)]
                fn drop(&mut self) {
                    $crate::__mark!("allocprof_end", $name, "", 2);
                }
            }
            $crate::__mark!("allocprof_begin", $name, "-4@$1", 1);
            Region(::core::marker::PhantomData)
        };
    };
}

/// Makes a future of one, whose output is the first one's with the [`Reading`] of all that it did. With a name that is a region, too:
/// a thread is in it while it polls the future or drops it.
#[macro_export]
macro_rules! measured {
    ($name:literal, $future:expr $(,)?) => {{
        struct Marks;
        impl $crate::Marks for Marks {
            #[inline(always)]
            fn begin() {
                $crate::__mark!("allocprof_begin", $name, "-4@$2", 4);
            }
            #[inline(always)]
            fn end() {
                $crate::__mark!("allocprof_end", $name, "", 2);
            }
        }
        $crate::Measured::<_, Marks>::new($future)
    }};
    ($future:expr $(,)?) => {
        $crate::Measured::<_, ()>::new($future)
    };
}

/// Evaluates the expression, and panics where this thread asked for memory more often than allowed in it, or allocprof cannot tell.
/// Where nobody measures nothing is checked.
///
/// ```
/// let words = allocprof::assert_allocations!(0, "one two three".split(' ').count());
/// assert_eq!(words, 3);
/// ```
#[macro_export]
macro_rules! assert_allocations {
    ($most:expr, $work:expr $(,)?) => {{
        let most: u64 = $most;
        let (result, reading) = $crate::measure(|| $work);
        match reading {
            Ok(figures) => {
                let allocations = figures.allocations + figures.reallocations;
                assert!(allocations <= most, "{} allocated {} times, {} are allowed", stringify!($work), allocations, most);
            }
            Err($crate::Unread::Nobody) => (),
            Err(why) => panic!("{}", why),
        }
        result
    }};
}

/// The marks of a region that [`measured!`] makes.
pub trait Marks {
    fn begin();
    fn end();
}

impl Marks for () {
    #[inline(always)]
    fn begin() {}
    #[inline(always)]
    fn end() {}
}

/// The future that [`measured!`] makes.
pub struct Measured<F, M: Marks> {
    // None once it has ended, so that what it drops then is in the figures.
    future: Option<F>,
    sum: Sum,
    marks: PhantomData<fn() -> M>,
}

impl<F: Future, M: Marks> Measured<F, M> {
    pub fn new(future: F) -> Self {
        Measured { future: Some(future), sum: Sum::default(), marks: PhantomData }
    }
}

/// The thread is in the region as long as this is there, also where the future panics.
struct Entered<'a, M: Marks>(&'a mut Sum, PhantomData<M>);

impl<'a, M: Marks> Entered<'a, M> {
    #[inline(always)]
    fn new(sum: &'a mut Sum) -> Self {
        M::begin();
        sum.enter();
        Entered(sum, PhantomData)
    }
}

impl<M: Marks> Drop for Entered<'_, M> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.leave();
        M::end();
    }
}

impl<F: Future, M: Marks> Future for Measured<F, M> {
    type Output = (F::Output, Reading);

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: of the fields only the future is pinned, and it is never moved: it is dropped in its place.
        let this = unsafe { self.get_unchecked_mut() };
        let mut future = unsafe { Pin::new_unchecked(&mut this.future) };
        let output = {
            let _entered = Entered::<M>::new(&mut this.sum);
            let output = future.as_mut().as_pin_mut().expect("polled after its end").poll(context);
            if output.is_ready() {
                future.set(None);
            }
            output
        };
        output.map(|output| (output, this.sum.reading()))
    }
}

impl<F, M: Marks> Drop for Measured<F, M> {
    fn drop(&mut self) {
        if self.future.is_some() {
            let _entered = Entered::<M>::new(&mut self.sum);
            self.future = None;
        }
    }
}

/// What threads did while they were entered.
#[derive(Default)]
struct Sum {
    figures: Figures,
    before: Figures,
    // Of allocprof_read_(), as long as it is always the same, else INCOMPLETE.
    answer: i32,
    entered: u64,
}

impl Sum {
    fn enter(&mut self) {
        let (answer, before) = ask(Some(THREAD));
        if self.entered == 0 {
            self.answer = answer;
        } else if self.answer != answer {
            self.answer = INCOMPLETE;
        }
        self.before = before;
        self.entered += 1;
    }

    fn leave(&mut self) {
        let (answer, now) = ask(Some(THREAD));
        let (sum, before) = (&mut self.figures, &self.before);
        if self.answer != answer {
            self.answer = INCOMPLETE;
        }
        sum.allocations = sum.allocations.wrapping_add(now.allocations).wrapping_sub(before.allocations);
        sum.reallocations = sum.reallocations.wrapping_add(now.reallocations).wrapping_sub(before.reallocations);
        sum.deallocations = sum.deallocations.wrapping_add(now.deallocations).wrapping_sub(before.deallocations);
        sum.bytes_allocated = sum.bytes_allocated.wrapping_add(now.bytes_allocated).wrapping_sub(before.bytes_allocated);
        sum.bytes_reallocated = sum.bytes_reallocated.wrapping_add(now.bytes_reallocated).wrapping_sub(before.bytes_reallocated);
        sum.bytes_deallocated = sum.bytes_deallocated.wrapping_add(now.bytes_deallocated).wrapping_sub(before.bytes_deallocated);
        sum.live = sum.live.wrapping_add(now.live).wrapping_sub(before.live);
        sum.live_bytes = sum.live_bytes.wrapping_add(now.live_bytes).wrapping_sub(before.live_bytes);
    }

    fn reading(&self) -> Reading {
        reading(self.answer, Figures { entered: self.entered, ..self.figures })
    }
}

// In place of a region's name, and enum allocprof_answer, as in allocprof.h.
const THREAD: &str = ":thread";
const NOBODY: i32 = 0;
const COUNTS: i32 = 1;
const LIVE: i32 = 2;
const PROBES: i32 = -1;
const NO_REGIONS: i32 = -2;
const INCOMPLETE: i32 = -3;

fn reading(answer: i32, figures: Figures) -> Reading {
    match answer {
        COUNTS | LIVE => Ok(Figures { is_live: answer == LIVE, ..figures }),
        NOBODY => Err(Unread::Nobody),
        PROBES => Err(Unread::Probes),
        NO_REGIONS => Err(Unread::NoRegions),
        INCOMPLETE => Err(Unread::Incomplete(figures)),
        _ => Err(Unread::NotBegun),
    }
}

/// As `allocprof_read()` of allocprof.h.
fn ask(name: Option<&str>) -> (i32, Figures) {
    // A name that is longer is no region's, also when its end is cut off.
    let mut text = [0u8; 256];
    if let Some(name) = name {
        let n = name.len().min(text.len() - 1);
        text[..n].copy_from_slice(&name.as_bytes()[..n]);
    }
    let mut figures = Figures::default();
    let answer = call(if name.is_some() { text.as_ptr() } else { std::ptr::null() }, &mut figures);
    (answer, figures)
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[allow(named_asm_labels)]
fn call(name: *const u8, figures: &mut Figures) -> i32 {
    type Read = extern "C" fn(*const u8, *mut Figures, usize) -> i32;
    let (address, nop): (usize, u32);
    // SAFETY: it reads a word of the global offset table, which is 0 unless allocprof's library is loaded, and the nop, in whose
    // place a breakpoint is where a probe is set.
    unsafe {
        std::arch::asm!(
            __note!("allocprof_read", "figures", ""),
            ".weak allocprof_read_",
            "movq allocprof_read_@GOTPCREL(%rip), {address}",
            "movzbl 990b(%rip), {nop:e}",
            address = out(reg) address,
            nop = out(reg) nop,
            options(att_syntax),
        );
    }
    if address == 0 {
        return if nop != 0x90 { PROBES } else { NOBODY };
    }
    // SAFETY: the library defines the function so. It fills in the fields that it knows, as many bytes as it is told.
    let function: Read = unsafe { std::mem::transmute(address) };
    function(name, figures, std::mem::size_of::<[u64; 12]>())
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn call(_: *const u8, _: &mut Figures) -> i32 {
    NOBODY
}

/// A nop with a note that tells where it is, as SystemTap's sdt.h has it.
#[doc(hidden)]
#[macro_export]
macro_rules! __note {
    ($provider:literal, $name:literal, $arguments:literal) => {
        concat!(
            "990: nop\n",
            ".pushsection .note.stapsdt,\"?\",\"note\"\n",
            ".balign 4\n",
            ".4byte 992f-991f, 994f-993f, 3\n",
            "991: .asciz \"stapsdt\"\n",
            "992: .balign 4\n",
            "993: .8byte 990b, _.stapsdt.base, 0\n",
            ".asciz \"", $provider, "\"\n",
            ".asciz \"", $name, "\"\n",
            ".asciz \"", $arguments, "\"\n",
            "994: .balign 4\n",
            ".popsection\n",
            ".ifndef _.stapsdt.base\n",
            ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n",
            ".weak _.stapsdt.base\n",
            ".hidden _.stapsdt.base\n",
            "_.stapsdt.base: .space 1\n",
            ".size _.stapsdt.base, 1\n",
            ".popsection\n",
            ".endif\n",
        )
    };
}

/// A mark, whose begin has to be in the frame of what marks the region.
#[doc(hidden)]
#[macro_export]
macro_rules! __mark {
    ($provider:literal, $name:literal, $arguments:literal, $kind:literal) => {
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        #[allow(named_asm_labels)]
        {
            let address: usize;
            // SAFETY: it reads a word of the global offset table, which is 0 unless allocprof's library is loaded.
            unsafe {
                ::core::arch::asm!(
                    $crate::__note!($provider, $name, $arguments),
                    ".weak allocprof_mark_",
                    "movq allocprof_mark_@GOTPCREL(%rip), {}",
                    out(reg) address,
                    options(att_syntax),
                );
            }
            if address != 0 {
                // SAFETY: the library defines the function so.
                unsafe {
                    let mark: extern "C" fn(i32, *const u8) = ::core::mem::transmute(address);
                    mark($kind, concat!($name, "\0").as_ptr());
                    // No jump out of a frame that is gone then.
                    ::core::arch::asm!("");
                }
            }
        }
    };
}
