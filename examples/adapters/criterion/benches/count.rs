// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
mod allocations;

use allocations::Allocations;
use criterion::{criterion_group, criterion_main, Criterion};

const TEXT: &str = "one two three";

fn allocations(criterion: &mut Criterion<Allocations>) {
    criterion.bench_function("count/allocations", |bencher| bencher.iter_custom(|n| Allocations::of(n, || words::count(TEXT))));
    criterion.bench_function("split/allocations", |bencher| bencher.iter(|| words::split(TEXT)));
}

fn time(criterion: &mut Criterion) {
    criterion.bench_function("split/time", |bencher| bencher.iter(|| words::split(TEXT)));
}

criterion_group! {
    name = counted;
    config = Criterion::default().with_measurement(Allocations);
    targets = allocations
}
criterion_group!(timed, time);
criterion_main!(counted, timed);
