//! The demo: scenes that are played one after another on one cluster, told as things happen, and checked.
//!
//! | module | what it is about |
//! |---|---|
//! | [`shape`] | the cluster that it is played on |
//! | [`scenes`] | what is played, and what is checked |
//! | [`stage`] | what a scene does to the cluster, and how it waits |
//! | [`recorder`] | what is noticed of the cluster: who did what, and the lives of its pods |
//! | [`deed`] | one thing that somebody did, and how it is said |
//! | [`timeline`] | all that was noticed, as lines and bars |
//! | [`teller`] | the terminal |
//! | [`picture`] | the same as a page with a picture |

pub mod deed;
pub mod picture;
pub mod recorder;
pub mod scenes;
pub mod shape;
pub mod stage;
pub mod teller;
pub mod timeline;

pub use stage::Stage;
pub use timeline::Timeline;
