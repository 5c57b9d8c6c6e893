//! The call frame information of an image (`.eh_frame`, found through its header) and the landing pads of a function
//! (the call-site table of its language-specific data, as gcc and clang write it: Itanium C++ ABI, exception handling).

use std::collections::BTreeSet;

use gimli::{BaseAddresses, CieOrFde, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, Pointer, UnwindSection};

use super::memory::Memory;

/// A range of code that one entry of the call frame information covers.
pub struct Frame {
    /// First address.
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// Where the language-specific data lies.
    pub handlers: Option<u64>,
}

/// The call frame information of an image.
#[derive(Default)]
pub struct Frames {
    /// Its entries, up to the first that is damaged.
    pub all: Vec<Frame>,
    /// They begin where the table in the header says, and none reaches into the next one. Linkers write both from the same numbers, so if not,
    /// something is damaged.
    pub sound: bool,
}

/// What is found by the header `.eh_frame_hdr` at that address.
pub fn frames(image: &Memory, header: u64) -> Frames {
    let mut frames = Frames::default();
    let bases = BaseAddresses::default().set_eh_frame_hdr(header);
    let Ok(parsed) = EhFrameHdr::new(image.tail(header), LittleEndian).parse(&bases, 8) else { return frames };
    let Pointer::Direct(start) = parsed.eh_frame_ptr() else { return frames };
    let bases = bases.set_eh_frame(start);
    let section = EhFrame::new(image.tail(start), LittleEndian);
    let mut entries = section.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(fde) = entry else { continue };
        let Ok(fde) = fde.parse(EhFrame::cie_from_offset) else { continue };
        let handlers = match fde.lsda() {
            Some(Pointer::Direct(at)) if at != 0 => Some(at),
            // Kept in a word elsewhere: no compiler for this machine does so.
            Some(Pointer::Indirect(_)) => Some(UNKNOWN),
            _ => None,
        };
        frames.all.push(Frame { start: fde.initial_address(), end: fde.end_address(), handlers });
    }
    let mut ranges: Vec<(u64, u64)> = frames.all.iter().map(|frame| (frame.start, frame.end)).collect();
    ranges.sort_unstable();
    let apart = ranges.windows(2).all(|two| two[0].1 <= two[1].0);
    frames.sound = apart
        && parsed.table().is_none_or(|table| {
            let (mut listed, mut table) = (BTreeSet::new(), table.iter(&bases));
            while let Ok(Some((Pointer::Direct(at), _))) = table.next() {
                listed.insert(at);
            }
            listed == frames.all.iter().map(|frame| frame.start).collect()
        });
    frames
}

/// The place of a table of landing pads of which nothing is known: there is no table at 0.
pub const UNKNOWN: u64 = 0;

/// The landing pads of the function at `start` with language-specific data at `at`. None: not understood.
pub fn landing_pads(image: &Memory, start: u64, at: u64) -> Option<BTreeSet<u64>> {
    const OMIT: u8 = 0xff;
    const ULEB128: u8 = 1;
    let bytes = image.tail(at);
    let mut table = Table { rest: EndianSlice::new(bytes, LittleEndian) };
    if table.byte()? != OMIT {
        return None; // landing pads relative to another place: not written by compilers for this machine
    }
    if table.byte()? != OMIT {
        table.uleb()?; // where the types are
    }
    let encoding = table.byte()?;
    let size = table.uleb()?;
    let end = table.rest.len().checked_sub(usize::try_from(size).ok()?)?;
    let mut pads = BTreeSet::new();
    while table.rest.len() > end {
        let mut field = || if encoding == ULEB128 { table.uleb() } else { table.fixed(encoding) };
        let (_start, _length, pad) = (field()?, field()?, field()?);
        table.uleb()?; // action
        if pad != 0 {
            pads.insert(start.wrapping_add(pad));
        }
    }
    Some(pads)
}

struct Table<'a> {
    rest: EndianSlice<'a, LittleEndian>,
}

impl Table<'_> {
    fn byte(&mut self) -> Option<u8> {
        gimli::Reader::read_u8(&mut self.rest).ok()
    }

    fn uleb(&mut self) -> Option<u64> {
        gimli::Reader::read_uleb128(&mut self.rest).ok()
    }

    /// DW_EH_PE_udata4, sdata4, udata8, sdata8, udata2.
    fn fixed(&mut self, encoding: u8) -> Option<u64> {
        use gimli::Reader;
        match encoding & 0x0f {
            0x02 => self.rest.read_u16().ok().map(u64::from),
            0x03 | 0x0b => self.rest.read_u32().ok().map(u64::from),
            0x04 | 0x0c => self.rest.read_u64().ok(),
            _ => None,
        }
    }
}
