//! Numbers that look random and are the same in every run.

/// One step of a well-mixing hash.
pub(crate) fn mix(seed: u64) -> u64 {
    let seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let seed = (seed ^ (seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let seed = (seed ^ (seed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    seed ^ (seed >> 31)
}

/// A source of numbers.
#[derive(Debug)]
pub(crate) struct Source {
    seed: u64,
    drawn: u64,
}

impl Source {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed: mix(seed), drawn: 0 }
    }

    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        mix(self.seed ^ mix(self.drawn))
    }

    /// A UUID of version 4.
    pub(crate) fn uid(&mut self) -> String {
        let (high, low) = (self.draw(), self.draw());
        // Version and variant, in the places where every UUID has them.
        let (time, clock) = ((high & !0xf000) | 0x4000, (low >> 48 & 0x3fff) | 0x8000);
        let (time_low, time_mid, node) = (time >> 32, time >> 16 & 0xffff, low & 0xffff_ffff_ffff);
        format!("{time_low:08x}-{time_mid:04x}-{:04x}-{clock:04x}-{node:012x}", time & 0xffff)
    }

    /// What the server appends to a generateName.
    pub(crate) fn suffix(&mut self) -> String {
        const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut number = self.draw();
        let mut suffix = String::with_capacity(5);
        for _ in 0..5 {
            suffix.push(char::from(ALPHABET[usize::try_from(number % 27).unwrap_or_default()]));
            number /= 27;
        }
        suffix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_are_uuids_and_repeat_with_the_seed() {
        let draw = |seed| {
            let mut source = Source::new(seed);
            (source.uid(), source.suffix())
        };
        let (uid, suffix) = draw(1);
        assert_eq!((uid.len(), uid.as_bytes()[14], suffix.len()), (36, b'4', 5));
        assert_eq!(draw(1), (uid, suffix));
        assert_ne!(draw(1), draw(2));
    }
}
