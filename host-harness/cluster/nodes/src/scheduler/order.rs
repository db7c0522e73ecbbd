//! The order among equals.
//!
//! Stands for the random choice among nodes of one score, and for the order in which equals came.
//! Here a seed decides, so that the same state leads to the same decisions.

/// A number that is as good as random, and the same each time.
pub(super) fn rank(seed: u64, parts: &[&str]) -> u64 {
    // 64-bit FNV-1a, and the finalizer of SplitMix64 because the last bytes hardly reach the top bits.
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0xff]));
    let hash = seed
        .to_le_bytes()
        .into_iter()
        .chain(bytes)
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
