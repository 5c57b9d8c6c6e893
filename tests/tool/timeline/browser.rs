//! Chromium without a window, spoken to through pipes: Chrome DevTools Protocol, a JSON message between zero bytes.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{json, Value};

/// A browser with one page.
pub struct Browser {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: Value,
    asked: u64,
    /// What the page has complained of: console, exceptions, the browser's own log.
    pub complaints: Vec<String>,
    /// Addresses that it has asked for.
    pub requests: Vec<String>,
}

impl Browser {
    /// Chromium, if it is installed. Its profile is made below `dir`.
    pub fn start(dir: &Path) -> Option<Browser> {
        let there = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|done| done.status.success());
        let Some(name) = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(there) else {
            eprintln!("no Chromium is installed: the page is checked by its text alone");
            return None;
        };
        // The browser reads messages from descriptor 3 and writes them to 4.
        let call = "exec \"$0\" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars \
                    --remote-debugging-pipe \"--user-data-dir=$1\" about:blank 3<&0 4>&1 </dev/null >/dev/null 2>&1";
        let mut command = Command::new("sh");
        command.args(["-c", call, name]).arg(dir.join("profile")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("a shell");
        let (to, from) = (process.stdin.take().expect("a pipe"), process.stdout.take().expect("a pipe"));
        let (complaints, requests) = (Vec::new(), Vec::new());
        let mut browser =
            Browser { process, to, from: BufReader::new(from), session: Value::Null, asked: 0, complaints, requests };
        let target = browser.ask("Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let attached = browser.ask("Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        browser.session = attached["sessionId"].clone();
        ["Page", "Runtime", "Log", "Network"]
            .iter()
            .for_each(|part| drop(browser.ask(&format!("{part}.enable"), json!({}))));
        Some(browser)
    }

    /// Asks for something, and waits for the answer.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let mut message = json!({"id": self.asked, "method": method, "params": params});
        if !self.session.is_null() {
            message["sessionId"] = self.session.clone();
        }
        self.to.write_all(format!("{message}\0").as_bytes()).expect("the browser listens");
        loop {
            let answer = self.read();
            if answer["id"] == self.asked {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.note(&answer);
        }
    }

    fn read(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes).expect("the browser answers");
        assert_eq!(bytes.pop(), Some(0), "the browser is gone");
        serde_json::from_slice(&bytes).expect("JSON")
    }

    fn note(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str() {
            Some("Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded") => {
                self.complaints.push(params.to_string());
            }
            Some("Network.requestWillBeSent") => {
                self.requests.push(params["request"]["url"].as_str().unwrap_or_default().to_string());
            }
            _ => {}
        }
    }

    /// Opens a file in a window of that width, light or dark, and waits until it is there.
    pub fn open(&mut self, file: &Path, fragment: &str, width: u32, scheme: &str) {
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.ask("Emulation.setDeviceMetricsOverride", size);
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.ask("Emulation.setEmulatedMedia", features);
        self.ask("Page.navigate", json!({"url": "about:blank"}));
        let address = format!("file://{}{fragment}", file.display());
        self.ask("Page.navigate", json!({"url": address}));
        let there = "new Promise(r => document.readyState === 'complete' ? r(location.href) : addEventListener('load', () => r(location.href)))";
        assert_eq!(self.value(there), Value::from(address));
    }

    /// The value of an expression in the page, awaited.
    pub fn value(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let done = self.ask("Runtime.evaluate", params);
        assert!(done.get("exceptionDetails").is_none(), "{expression}: {done}");
        done["result"]["value"].clone()
    }

    /// A picture of what is to be seen, in a file of that name in the directory that VSRUN_PICTURES names, if there is one.
    pub fn picture(&mut self, name: &str, all: bool) -> Vec<u8> {
        let shot = self.ask("Page.captureScreenshot", json!({"format": "png", "captureBeyondViewport": all}));
        let bytes = decoded(shot["data"].as_str().expect("a picture"));
        if let Some(dir) = std::env::var_os("VSRUN_PICTURES") {
            std::fs::write(Path::new(&dir).join(name), &bytes).expect("a directory for pictures");
        }
        bytes
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Base64 (RFC 4648) with padding.
fn decoded(text: &str) -> Vec<u8> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut n) = (Vec::new(), 0u32, 0);
    for letter in text.bytes().take_while(|&letter| letter != b'=') {
        let value = LETTERS.iter().position(|&l| l == letter).expect("base64") as u32;
        (bits, n) = (bits << 6 | value, n + 6);
        if n >= 8 {
            n -= 8;
            bytes.push((bits >> n) as u8);
        }
    }
    bytes
}
