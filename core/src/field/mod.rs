//! Paths and errors in the form in which Kubernetes reports them
//! (`k8s.io/apimachinery/pkg/util/validation/field`).

mod error;
mod path;
mod quote;

pub use error::{BadValue, Error, ErrorList, ErrorType};
pub use path::Path;
pub use quote::quote;
