//! Colours. They are written as escapes; the stream strips them where it is no terminal.

use anstyle::{AnsiColor, Style};

/// Good.
pub const GREEN: Style = AnsiColor::Green.on_default();
/// Wrong.
pub const RED: Style = AnsiColor::Red.on_default();
/// Doubtful.
pub const YELLOW: Style = AnsiColor::Yellow.on_default();
/// Names.
pub const BOLD: Style = Style::new().bold();
/// What is there, and not meant to be looked at.
pub const DIM: Style = Style::new().dimmed();
