//! Packages what is released: the annotated module and its papers, and the controller's image; pushes both to a
//! registry, and pulls and verifies them.
//!
//! Everything that is written follows from the commit: no clock, no random number, no path of the machine.

pub mod annotate;
pub mod bundle;
pub mod checksums;
pub mod crates;
pub mod digest;
pub mod file;
pub mod image;
pub mod metadata;
pub mod module;
pub mod provenance;
pub mod registry;
pub mod sbom;
pub mod source;
pub mod spec;
