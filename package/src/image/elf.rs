//! What a binary must be to start in an image that has nothing else.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context as _, Result, bail, ensure};

/// The processors that images are made for, by the names of the specification.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Architecture {
    /// x86-64.
    Amd64,
    /// 64-bit ARM.
    Arm64,
}

/// The kind of program header that names a dynamic linker.
const PT_INTERP: u32 = 3;

impl Architecture {
    /// Looks into a binary's header.
    ///
    /// # Errors
    /// It is no 64-bit ELF, for another processor, or asks for a dynamic linker, which the image does not have.
    pub fn check(self, binary: &[u8]) -> Result<()> {
        ensure!(binary.starts_with(b"\x7fELF\x02\x01"), "no 64-bit ELF");
        let machine = u16::from_le_bytes(at(binary, 18)?);
        let expected = match self {
            Self::Amd64 => 62,
            Self::Arm64 => 183,
        };
        ensure!(machine == expected, "it is for machine {machine} instead of {expected}");
        let headers = usize::try_from(u64::from_le_bytes(at(binary, 32)?))?;
        let size = usize::from(u16::from_le_bytes(at(binary, 54)?));
        let count = usize::from(u16::from_le_bytes(at(binary, 56)?));
        for number in 0..count {
            let offset =
                number.checked_mul(size).and_then(|offset| offset.checked_add(headers)).context("too large")?;
            ensure!(
                u32::from_le_bytes(at(binary, offset)?) != PT_INTERP,
                "it is not static: it names a dynamic linker"
            );
        }
        Ok(())
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        })
    }
}

impl FromStr for Architecture {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "amd64" => Ok(Self::Amd64),
            "arm64" => Ok(Self::Arm64),
            _ => bail!("{name:?} is no architecture: amd64, arm64"),
        }
    }
}

fn at<const N: usize>(bytes: &[u8], offset: usize) -> Result<[u8; N]> {
    let part = bytes.get(offset..).and_then(|rest| rest.first_chunk());
    part.copied().context("the ELF header is cut off")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with one program header of a kind.
    fn elf(machine: u16, kind: u32) -> Vec<u8> {
        let mut header = vec![0; 64];
        header[..6].copy_from_slice(b"\x7fELF\x02\x01");
        header[18..20].copy_from_slice(&machine.to_le_bytes());
        header[32] = 64;
        header[54] = 56;
        header[56] = 1;
        header.extend(kind.to_le_bytes());
        header.extend([0; 52]);
        header
    }

    #[test]
    fn a_static_binary_is_taken_for_its_own_processor_only() {
        Architecture::Amd64.check(&elf(62, 1)).expect("static");
        Architecture::Arm64.check(&elf(183, 1)).expect("static");
        assert!(Architecture::Arm64.check(&elf(62, 1)).is_err());
    }

    #[test]
    fn a_binary_that_needs_a_dynamic_linker_is_refused() {
        let error = Architecture::Amd64.check(&elf(62, PT_INTERP)).expect_err("dynamic");
        assert!(error.to_string().contains("not static"), "{error}");
    }

    #[test]
    fn what_is_no_binary_is_refused() {
        for bytes in [&b"#!/bin/sh"[..], b"\x7fELF\x02\x01", b""] {
            assert!(Architecture::Amd64.check(bytes).is_err());
        }
    }
}
