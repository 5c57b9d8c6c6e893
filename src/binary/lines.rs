//! Source lines of addresses, from debug information. Read when first asked for; whatever is damaged counts as not there.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use addr2line::{Context, LookupContinuation, LookupResult, SplitDwarfLoad};
use gimli::Reader;

use super::debuginfo::{load, Bytes, Dwarf, Package, Stores};
use super::demangle::demangle;
use super::variables::Variables;
use crate::finding::LineView;

/// Functions inlined into each other that are told.
const MOST_INLINED: usize = 16;
/// Bytes of a source file that are read.
const LARGEST_SOURCE: u64 = 1 << 24;
/// Characters of a source line that are kept.
const LONGEST_LINE: usize = 100;

/// The source lines of one file.
pub(super) struct Lines {
    context: Context<Bytes>,
    package: Package,
    /// When the file was written: sources that were changed later are not those that it was made from.
    written: Option<SystemTime>,
    known: BTreeMap<u64, Vec<LineView>>,
    dwarf: Arc<Dwarf>,
    /// Read when first asked for.
    variables: Option<Variables>,
    parts: BTreeMap<(u64, u64), Option<(String, u64)>>,
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Lines").field("known", &self.known.len()).finish_non_exhaustive()
    }
}

impl Lines {
    /// Those of the file at `path`, if it has debug information that can be read.
    pub fn open(path: &Path, stores: &Stores) -> Option<Lines> {
        let found = load(path, stores).inspect_err(|e| log::debug!("debug information of {}: {e}", path.display()));
        let (debug, dwarf) = found.ok()??;
        let package = [path, &debug].map(Package::beside).into_iter().find(Package::is_there).unwrap_or_default();
        let dwarf = Arc::new(dwarf);
        let context =
            Context::from_arc_dwarf(dwarf.clone()).inspect_err(|e| log::debug!("{}: {e}", debug.display())).ok()?;
        let written = path.metadata().and_then(|meta| meta.modified()).ok();
        let (known, parts) = (BTreeMap::new(), BTreeMap::new());
        Some(Lines { context, package, written, known, dwarf, variables: None, parts })
    }

    /// The lines of the instruction at `address` of the file, that of the innermost inlined function first.
    pub fn at(&mut self, address: u64) -> Vec<LineView> {
        if let Some(known) = self.known.get(&address) {
            return known.clone();
        }
        let found = self.look_up(address).inspect_err(|e| log::debug!("source line of {address:#x}: {e}"));
        let lines = found.unwrap_or_default();
        self.known.insert(address, lines.clone());
        lines
    }

    fn look_up(&self, address: u64) -> Result<Vec<LineView>, gimli::Error> {
        // The names of files are in the sections of the file itself; a look-up of frames that comes first takes those of the part for them.
        self.context.find_location(address)?;
        let mut frames = self.finished(self.context.find_frames(address))?;
        let directory = self.directory(address);
        let mut lines = Vec::new();
        while let Some(frame) = frames.next()?.filter(|_| lines.len() < MOST_INLINED) {
            let function = frame.function.as_ref().and_then(|name| Some(demangle(&name.raw_name().ok()?)));
            let location = frame.location.as_ref();
            let Some(file) = location.and_then(|at| at.file).filter(|file| !file.is_empty()) else { break };
            let line = location.and_then(|at| at.line).unwrap_or(0);
            lines.push(LineView {
                function: function.unwrap_or_default(),
                file: file.to_string(),
                name: short(file, &directory),
                line,
                text: self.text(Path::new(file), line),
            });
        }
        Ok(lines)
    }

    /// What a look-up comes to, with the parts of split debug information that it wants.
    fn finished<L: LookupContinuation<Buf = Bytes>>(&self, mut result: LookupResult<L>) -> L::Output {
        loop {
            match result {
                LookupResult::Output(output) => return output,
                LookupResult::Load { load, continuation } => result = continuation.resume(self.part(&load)),
            }
        }
    }

    fn part(&self, load: &SplitDwarfLoad<Bytes>) -> Option<Arc<Dwarf>> {
        let directory = load.comp_dir.as_ref().and_then(path_of).unwrap_or_default();
        let file = load.path.as_ref().and_then(path_of).map(|file| directory.join(file));
        self.package.part(load.dwo_id, file.as_deref(), &load.parent)
    }

    /// What lies `offset` bytes behind the start of the variable at `address`: `[1].lock`, and bytes behind the start of that. `None`:
    /// nothing is known of it.
    pub fn part_of_variable(&mut self, address: u64, offset: u64) -> Option<(String, u64)> {
        if self.variables.is_none() {
            let mut variables = Variables::default();
            if let Err(e) = self.read_variables(&mut variables) {
                log::debug!("types of variables: {e}");
            }
            self.variables = Some(variables);
        }
        let variables = self.variables.as_ref()?;
        self.parts.entry((address, offset)).or_insert_with(|| variables.part(address, offset)).clone()
    }

    fn read_variables(&self, variables: &mut Variables) -> gimli::Result<()> {
        let mut headers = self.dwarf.units();
        while let Some(header) = headers.next()? {
            let unit = self.dwarf.unit(header)?;
            let name = unit.dwo_name()?.and_then(|name| self.dwarf.attr_string(&unit, name).ok());
            let Some((id, name)) = unit.dwo_id.zip(name) else {
                variables.add(&self.dwarf, unit)?;
                continue;
            };
            let directory = unit.comp_dir.as_ref().and_then(path_of).unwrap_or_default();
            let file = path_of(&name).map(|name| directory.join(name));
            let Some(part) = self.package.part(id, file.as_deref(), &self.dwarf) else { continue };
            let mut headers = part.units();
            while let Some(header) = headers.next()? {
                let mut split = part.unit(header)?;
                split.copy_relocated_attributes(&unit);
                variables.add(&part, split)?;
            }
        }
        Ok(())
    }

    /// Where the code at `address` was compiled.
    fn directory(&self, address: u64) -> String {
        let unit = self.finished(self.context.find_dwarf_and_unit(address));
        let directory = unit.and_then(|unit| unit.comp_dir.clone());
        directory.and_then(|bytes| Some(bytes.to_string_lossy().ok()?.into_owned())).unwrap_or_default()
    }

    /// The line with that number of a source file, without what is left and right of it.
    fn text(&self, path: &Path, line: u32) -> Option<String> {
        let meta = path.metadata().ok().filter(|meta| meta.is_file() && meta.len() <= LARGEST_SOURCE)?;
        if line == 0 || meta.modified().ok()? > self.written? {
            return None;
        }
        let mut source = Vec::new();
        File::open(path).ok()?.take(LARGEST_SOURCE).read_to_end(&mut source).ok()?;
        let text = source.split(|byte| *byte == b'\n').nth(line as usize - 1)?;
        let text = String::from_utf8_lossy(text.trim_ascii()).replace('\t', " ");
        let cut = text.char_indices().nth(LONGEST_LINE).map_or(text.len(), |(at, _)| at);
        let more = if cut < text.len() { ".." } else { "" };
        (cut > 0).then(|| format!("{}{more}", &text[..cut]))
    }
}

fn path_of(bytes: &Bytes) -> Option<PathBuf> {
    bytes.to_slice().ok().map(|bytes| PathBuf::from(OsStr::from_bytes(&bytes)))
}

/// The file for people: as it was named where it was compiled, or its last component.
fn short<'a>(file: &'a str, directory: &str) -> String {
    let below = file.strip_prefix(directory).and_then(|rest| rest.strip_prefix('/')).filter(|_| !directory.is_empty());
    let plain = |name: &'a str| name.trim_start_matches("./").trim_start_matches("../");
    let name = below.map(plain).filter(|name| !name.is_empty());
    let last = || Path::new(file).file_name().map_or(file.into(), |name| name.to_string_lossy().into_owned());
    name.map_or_else(last, String::from)
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
