//! The faces of the core beside Kubewarden's: the module for OPA in the `opa-wasm` crate, and JavaScript in
//! Node. The hosts are those that users have.

pub mod javascript;
pub mod opa;
