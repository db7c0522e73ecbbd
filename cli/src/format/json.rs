//! `{"findings": […], "totals": {…}}`

use std::io::{self, Write};

use super::Form;
use crate::finding::Finding;
use crate::lint::Totals;

#[derive(Default)]
pub(super) struct Json {
    begun: bool,
}

impl Form for Json {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"{\"findings\":[")
    }

    fn finding(&mut self, out: &mut dyn Write, finding: &Finding) -> io::Result<()> {
        out.write_all(if std::mem::replace(&mut self.begun, true) { b",\n" } else { b"\n" })?;
        serde_json::to_writer(out, finding).map_err(io::Error::from)
    }

    fn end(&mut self, out: &mut dyn Write, totals: &Totals) -> io::Result<()> {
        out.write_all(b"\n],\"totals\":")?;
        serde_json::to_writer(&mut *out, totals)?;
        out.write_all(b"}\n")
    }
}
