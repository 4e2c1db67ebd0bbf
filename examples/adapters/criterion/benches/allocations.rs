// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! Allocations per iteration for criterion, in place of its time. Copy this file; a benchmark of `Criterion<Allocations>` then
//! counts what its own thread asks for, where allocprof measures it. `cargo bench -- --noplot` leaves out plots, which criterion
//! cannot draw of samples that are all the same.
use criterion::measurement::{Measurement, ValueFormatter};
use criterion::{black_box, Throughput};

pub struct Allocations;

/// Nothing is counted where nobody measures: an answer would be of no use, so the benchmark ends.
fn asked_for() -> u64 {
    match allocprof::read_thread() {
        Ok(figures) => figures.allocations + figures.reallocations,
        Err(why) => panic!("{why}: run it by `allocprof stat --engine=preload`"),
    }
}

impl Allocations {
    /// For `iter_custom()`, which takes what allocates nothing: criterion drops benchmarks of which `iter()` measures 0.
    pub fn of<T>(iterations: u64, routine: impl Fn() -> T) -> u64 {
        let before = asked_for();
        for _ in 0..iterations {
            black_box(routine());
        }
        (asked_for() - before) * UNITS + iterations
    }
}

/// Units of a value that are one allocation, so that a value need not be 0.
const UNITS: u64 = 1_000_000;

impl Measurement for Allocations {
    type Intermediate = u64;
    type Value = u64;

    fn start(&self) -> u64 {
        asked_for()
    }

    fn end(&self, before: u64) -> u64 {
        (asked_for() - before) * UNITS
    }

    fn add(&self, one: &u64, other: &u64) -> u64 {
        one + other
    }

    fn zero(&self) -> u64 {
        0
    }

    fn to_f64(&self, value: &u64) -> f64 {
        *value as f64 / UNITS as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        self
    }
}

impl ValueFormatter for Allocations {
    fn format_value(&self, value: f64) -> String {
        format!("{value:.4} allocations")
    }

    fn scale_values(&self, _typical: f64, _values: &mut [f64]) -> &'static str {
        "allocations"
    }

    fn scale_throughputs(&self, _typical: f64, throughput: &Throughput, values: &mut [f64]) -> &'static str {
        let (n, unit) = match *throughput {
            Throughput::Elements(n) => (n, "allocations/elem"),
            Throughput::Bytes(n) => (n, "allocations/B"),
            #[allow(unreachable_patterns)]
            _ => (1, "allocations"),
        };
        for value in values {
            *value /= n as f64;
        }
        unit
    }

    fn scale_for_machines(&self, _values: &mut [f64]) -> &'static str {
        "allocations"
    }
}
