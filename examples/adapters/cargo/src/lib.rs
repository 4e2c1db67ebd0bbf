// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/// The number of words.
pub fn count(text: &str) -> usize {
    if cfg!(feature = "regression") {
        return text.split(' ').collect::<Vec<_>>().len();
    }
    text.split(' ').count()
}

/// The words, apart.
pub fn split(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use allocprof::assert_allocations;

    // Tests run beside each other, and each is told what its own thread does.
    #[test]
    fn counts_without_an_allocation() {
        for _ in 0..1000 {
            assert_eq!(assert_allocations!(0, count("one two three")), 3);
        }
    }

    #[test]
    fn splits_with_four() {
        for _ in 0..1000 {
            assert_eq!(assert_allocations!(4, split("one two three")).len(), 3);
        }
    }
}
