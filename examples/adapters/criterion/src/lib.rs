// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/// Counts the words of a text.
pub fn count(text: &str) -> usize {
    if cfg!(feature = "regression") {
        text.split(' ').collect::<Vec<_>>().len()
    } else {
        text.split(' ').count()
    }
}

/// Returns its words.
pub fn split(text: &str) -> Vec<String> {
    text.split(' ').map(String::from).collect()
}
