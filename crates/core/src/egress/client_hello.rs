//! The server name in the first message of a TLS connection (ClientHello, RFC 8446).
//!
//! The reader takes bytes as they arrive: records may be split anywhere, and a message may extend
//! over several records. It buffers at most [`LONGEST_HELLO`] bytes. Each byte is read once.

use super::Denial;
use super::host::Host;

/// The longest accepted ClientHello, in bytes. Common ones have 200 to 2,000.
pub const LONGEST_HELLO: usize = 32 * 1024;

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const LONGEST_RECORD: usize = 16 * 1024;
const RECORD_HEADER: usize = 5;
const MESSAGE_HEADER: usize = 4;

const SERVER_NAME: u16 = 0;
/// Encrypted client hello, and its predecessor.
const HIDDEN_NAMES: [u16; 2] = [0xfe0d, 0xffce];

/// Reads a ClientHello from pieces of a connection.
#[derive(Clone, Debug, Default)]
pub struct HelloReader {
    /// The unfinished header of the current record.
    header: Vec<u8>,
    /// Bytes of the current record that are still to come.
    remaining: usize,
    /// The payload of the records.
    message: Vec<u8>,
}

impl HelloReader {
    /// Takes the next bytes. Returns the server name once the message is complete.
    pub fn read(&mut self, mut bytes: &[u8]) -> Result<Option<String>, Denial> {
        while !bytes.is_empty() {
            if self.remaining == 0 {
                let (taken, rest) =
                    bytes.split_at(bytes.len().min(RECORD_HEADER - self.header.len()));
                self.header.extend_from_slice(taken);
                bytes = rest;
                if !self.begin_record()? {
                    continue;
                }
            }
            let (taken, rest) = bytes.split_at(bytes.len().min(self.remaining));
            if self.message.len() + taken.len() > LONGEST_HELLO {
                return Err(Denial::NotTls("it is too long"));
            }
            self.message.extend_from_slice(taken);
            self.remaining -= taken.len();
            bytes = rest;
            if let Some(hello) = self.complete()? {
                return server_name(hello).map(Some);
            }
        }
        Ok(None)
    }

    /// Checks the part of a record's header that has arrived. Returns whether it is complete.
    fn begin_record(&mut self) -> Result<bool, Denial> {
        let header = &self.header;
        if header.first().is_some_and(|kind| *kind != HANDSHAKE) {
            return Err(Denial::NotTls("it is no handshake"));
        }
        if header.get(1).is_some_and(|major| *major != 3) {
            return Err(Denial::NotTls("its version is unknown"));
        }
        let [_, _, _, high, low] = header[..] else {
            return Ok(false);
        };
        self.remaining = usize::from(u16::from_be_bytes([high, low]));
        self.header.clear();
        match (1..=LONGEST_RECORD).contains(&self.remaining) {
            true => Ok(true),
            false => Err(Denial::NotTls("the length of its record is invalid")),
        }
    }

    /// Returns the body of the message if all of it has arrived.
    fn complete(&self) -> Result<Option<&[u8]>, Denial> {
        if self
            .message
            .first()
            .is_some_and(|kind| *kind != CLIENT_HELLO)
        {
            return Err(Denial::NotTls("it is another message"));
        }
        let Some((&[_, a, b, c], body)) = self.message.split_first_chunk::<MESSAGE_HEADER>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        if length > LONGEST_HELLO - MESSAGE_HEADER {
            return Err(Denial::NotTls("it is too long"));
        }
        Ok(body.get(..length))
    }
}

/// Returns the server name of the body of a ClientHello.
fn server_name(hello: &[u8]) -> Result<String, Denial> {
    let extensions = extensions(hello).ok_or(Denial::NotTls("it is malformed"))?;
    let mut fields = Fields(extensions);
    let mut name = None;
    while !fields.0.is_empty() {
        let extension = fields.number().zip(fields.long());
        let (kind, content) = extension.ok_or(Denial::NotTls("it is malformed"))?;
        if HIDDEN_NAMES.contains(&kind) {
            return Err(Denial::HiddenServerName);
        }
        if kind == SERVER_NAME && name.replace(content).is_some() {
            return Err(Denial::NotTls("it names its server twice"));
        }
    }
    let content = name.ok_or(Denial::NoServerName)?;
    let name = host_name(content).ok_or(Denial::NotTls("its server name is malformed"))?;
    match Host::parse(name) {
        Ok(Host::Name(parsed)) if !name.ends_with('.') => Ok(parsed),
        _ => Err(Denial::NotTls("its server name is malformed")),
    }
}

/// Returns the extensions. They must end with the message.
fn extensions(hello: &[u8]) -> Option<&[u8]> {
    let mut fields = Fields(hello);
    let _version = fields.take(2)?;
    let _random = fields.take(32)?;
    let session = fields.short()?;
    let ciphers = fields.long()?;
    let compression = fields.short()?;
    let is_valid = session.len() <= 32
        && !ciphers.is_empty()
        && ciphers.len().is_multiple_of(2)
        && !compression.is_empty();
    if !is_valid {
        return None;
    }
    // A message of TLS 1.2 may have no extensions at all.
    if fields.0.is_empty() {
        return Some(&[]);
    }
    let extensions = fields.long()?;
    fields.0.is_empty().then_some(extensions)
}

/// Returns the only entry of a list of server names. Its type must be 0 (a host name).
fn host_name(content: &[u8]) -> Option<&str> {
    let mut fields = Fields(content);
    let mut list = Fields(fields.long()?);
    let kind = list.take(1)?;
    let name = list.long()?;
    let is_only = kind == [0] && list.0.is_empty() && fields.0.is_empty();
    std::str::from_utf8(name).ok().filter(|_| is_only)
}

/// The remaining bytes of a structure.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u16> {
        let bytes = self.take(2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// Takes bytes after a length of one byte.
    fn short(&mut self) -> Option<&'a [u8]> {
        let length = self.take(1)?[0];
        self.take(usize::from(length))
    }

    /// Takes bytes after a length of two bytes.
    fn long(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(usize::from(length))
    }
}

#[cfg(test)]
mod tests;
