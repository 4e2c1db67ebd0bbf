// SPDX-License-Identifier: GPL-3.0-or-later
// Generics, closures, traits and inlining, for the places oracle.
use std::collections::HashMap;
use std::fmt::Display;

trait Shape {
    fn area(&self) -> f64;
}

struct Square(f64);

struct Circle {
    radius: f64,
}

impl Shape for Square {
    #[inline(always)]
    fn area(&self) -> f64 {
        self.0 * self.0
    }
}

impl Shape for Circle {
    fn area(&self) -> f64 {
        3.14 * self.radius * self.radius
    }
}

#[inline(never)]
fn describe<T: Display>(values: &[T]) -> Vec<String> {
    values.iter().map(|value| format!("<{}>", value)).filter(|text| text.len() > 3).collect()
}

mod inner {
    pub mod deeper {
        #[inline(always)]
        pub fn count(words: &[String]) -> usize {
            let mut seen = super::super::HashMap::new();
            words.iter().for_each(|word| *seen.entry(word.as_str()).or_insert(0usize) += 1);
            seen.values().copied().max().unwrap_or(0)
        }
    }
}

fn main() {
    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Square(2.0)), Box::new(Circle { radius: 1.5 })];
    let total: f64 = shapes.iter().map(|shape| shape.area()).sum();
    let texts = describe(&[total, 17.0, 42.5]);
    println!("{} {}", texts.join(","), inner::deeper::count(&texts));
}
