//! Metrics over HTTP, for a collector that asks for them.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A client that takes longer to ask or to read is given up, so that the next one is answered.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest request that is read. Every request gets the same answer.
const LONGEST_REQUEST: usize = 8 << 10;

/// Answers every request with the same text: what was given last.
pub(crate) struct MetricsServer {
    text: Arc<Mutex<Vec<u8>>>,
    address: SocketAddr,
}

impl MetricsServer {
    /// Listens at an address, and answers from now on.
    ///
    /// # Errors
    /// When the address is taken, is not of this machine, or may not be used.
    pub(crate) fn listen(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        // Without metrics it is a valid answer still.
        let text = Arc::new(Mutex::new(b"# EOF\n".to_vec()));
        let shared = text.clone();
        // It ends with the process.
        thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            for client in listener.incoming() {
                match client {
                    // A client may go away at any time.
                    Ok(client) => drop(answer(client, &shared)),
                    // No more open files, for instance: others may be closed meanwhile.
                    Err(_) => thread::sleep(PATIENCE),
                }
            }
        })?;
        Ok(Self { text, address })
    }

    /// Where it listens.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers with this text from now on.
    pub(crate) fn show(&self, text: Vec<u8>) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
}

fn answer(mut client: TcpStream, text: &Mutex<Vec<u8>>) -> io::Result<()> {
    client.set_write_timeout(Some(PATIENCE))?;
    let end = Instant::now() + PATIENCE;
    let (mut request, mut part) = (Vec::new(), [0; 1 << 10]);
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        // At least a moment: no time at all is an error.
        client.set_read_timeout(Some(end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))))?;
        let read = client.read(&mut part)?;
        if read == 0 || request.len() > LONGEST_REQUEST || Instant::now() >= end {
            return Ok(());
        }
        request.extend_from_slice(&part[..read]);
    }
    let text = text.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    client.write_all(head.as_bytes())?;
    client.write_all(if request.starts_with(b"HEAD ") { &[] } else { &text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn every_client_gets_the_last_text() {
        let server = MetricsServer::listen("127.0.0.1:0".parse().unwrap()).unwrap();
        server.show(b"a 1\n".to_vec());
        server.show(b"a 2\n# EOF\n".to_vec());
        // One that asks for nothing does not keep the next one from its answer.
        let silent = TcpStream::connect(server.address()).unwrap();
        drop(silent);
        for request in ["GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"] {
            let answer = ask(server.address(), request.as_bytes());
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\na 2\n# EOF\n"), "{answer}");
        }
        assert!(ask(server.address(), b"HEAD / HTTP/1.1\r\n\r\n").ends_with("Connection: close\r\n\r\n"));
        assert!(MetricsServer::listen(server.address()).is_err(), "the address is taken");
    }
}
