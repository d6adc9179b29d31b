//! Drawing of a film's frames by a browser, which sends them over a local connection.

use super::{Film, Video, browser};
use crate::page::stage;
use gif::{Encoder, Frame, Repeat};
use muxide::api::{Muxer, MuxerBuilder, VideoCodec};
use serde::Serialize;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tiny_http::{Header, Method, Request, Response, Server};

/// Time after which a browser that sends nothing is given up: a frame takes far less, its start a
/// few seconds.
const SILENCE: Duration = Duration::from_secs(60);

/// Time between two looks at the browser and at whoever watches.
const LOOK: Duration = Duration::from_millis(100);

/// Effort for the choice of 256 colours, from 1, the best, to 30: 10 is the usual one.
const COLOURS: i32 = 10;

/// Flags of the browser. The only page is our own, and in containers its sandbox does not start.
const FLAGS: [&str; 10] = [
    "headless",
    "disable-gpu",
    "hide-scrollbars",
    "force-device-scale-factor=1",
    "no-sandbox",
    "disable-dev-shm-usage",
    "no-first-run",
    "disable-sync",
    "disable-background-networking",
    "disable-component-update",
];

/// Flag for its settings and caches.
const PROFILE: &str = "user-data-dir";

/// What the page is told.
#[derive(Serialize)]
struct Told<'f> {
    width: u32,
    height: u32,
    rate: f64,
    times: &'f [f64],
    dark: bool,
    /// True for coded video, false for pixels.
    coded: bool,
    unit: &'f str,
}

/// File that takes frames one after the other.
enum Writer {
    Gif(Encoder<BufWriter<File>>, u16),
    Mp4(Box<Muxer<BufWriter<File>>>, f64),
}

impl Writer {
    fn new(film: &Film, video: Video, file: &Path) -> Result<Writer, String> {
        let (width, height) = film.size;
        let create = || {
            let created = File::create(file);
            created.map(BufWriter::new).map_err(|error| refused(file, &error))
        };
        match video {
            Video::Gif => {
                let side = |side: u32| u16::try_from(side).map_err(|_| "a GIF is too large");
                let (width, height) = (side(width)?, side(height)?);
                let encoder = Encoder::new(create()?, width, height, &[]);
                let mut encoder = encoder.map_err(|error| refused(file, &error))?;
                encoder.set_repeat(Repeat::Infinite).map_err(|error| refused(file, &error))?;
                // Browsers show frames of less than 2 hundredths of a second slowly.
                Ok(Writer::Gif(encoder, ((100.0 / film.rate).round() as u16).max(2)))
            }
            Video::Mp4 => {
                let muxer = MuxerBuilder::new(create()?)
                    .video(VideoCodec::H264, width, height, film.rate)
                    .build();
                Ok(Writer::Mp4(Box::new(muxer.map_err(|error| refused(file, &error))?), film.rate))
            }
        }
    }

    /// Takes frame `k`: its pixels, or a chunk of coded video.
    fn take(
        &mut self,
        k: usize,
        size: (u32, u32),
        bytes: &mut [u8],
        is_key: bool,
    ) -> Result<(), String> {
        match self {
            Writer::Gif(encoder, delay) => {
                if bytes.len() != 4 * size.0 as usize * size.1 as usize {
                    return Err("the browser has sent a frame of another size".into());
                }
                let mut frame =
                    Frame::from_rgba_speed(size.0 as u16, size.1 as u16, bytes, COLOURS);
                frame.delay = *delay;
                encoder.write_frame(&frame).map_err(|error| error.to_string())
            }
            Writer::Mp4(muxer, rate) => {
                let taken = muxer.write_video(k as f64 / *rate, bytes, is_key);
                taken.map_err(|error| error.to_string())
            }
        }
    }

    fn finish(self) -> Result<(), String> {
        match self {
            Writer::Gif(encoder, _) => {
                let file = encoder.into_inner().map_err(|error| error.to_string())?;
                file.into_inner().map(drop).map_err(|error| error.to_string())
            }
            Writer::Mp4(muxer, _) => muxer.finish().map_err(|error| error.to_string()),
        }
    }
}

fn refused(file: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{} cannot be written: {error}", file.display())
}

/// A browser that is closed when it is no longer needed.
struct Browser {
    child: Child,
    /// Its settings and caches.
    profile: TempDir,
}

impl Browser {
    fn open(program: &Path, address: &str) -> Result<Browser, String> {
        let profile =
            tempfile::tempdir().map_err(|error| format!("no folder for a browser: {error}"))?;
        let messages = File::create(profile.path().join("messages")).map_err(|e| e.to_string())?;
        let child = Command::new(program)
            .args(FLAGS.map(|flag| format!("--{flag}")))
            .arg(format!("--{PROFILE}={}", profile.path().join("profile").display()))
            .arg(address)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(messages)
            .spawn();
        let child =
            child.map_err(|error| format!("{} does not start: {error}", program.display()))?;
        Ok(Browser { child, profile })
    }

    /// What it said last, if it has ended.
    fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok()??;
        let said = fs::read_to_string(self.profile.path().join("messages")).unwrap_or_default();
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        Some(format!("the browser has ended ({status}): {last}"))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes a film. See [`Film::write`].
pub(super) fn write(
    film: &Film,
    video: Video,
    file: &Path,
    program: Option<&Path>,
    watch: &mut dyn FnMut(usize) -> bool,
) -> Result<(), String> {
    let program = program.map(Path::to_path_buf).or_else(browser).ok_or(
        "films are drawn by a browser, and none is found: install Chromium or Chrome, or name the program of one",
    )?;
    let told = Told {
        width: film.size.0,
        height: film.size.1,
        rate: film.rate,
        times: &film.times,
        dark: film.dark,
        coded: video == Video::Mp4,
        unit: &film.unit,
    };
    let page = stage(&film.motion, &told);
    let server = Server::http("127.0.0.1:0")
        .map_err(|error| format!("no local connection to a browser: {error}"))?;
    let address = format!("http://{}/", server.server_addr());
    let mut writer = Writer::new(film, video, file)?;
    let result = Browser::open(&program, &address)
        .and_then(|browser| receive(film, &page, (&server, browser), &mut writer, watch));
    let result = result.and_then(|()| writer.finish());
    if result.is_err() {
        // Half a film is none.
        let _ = fs::remove_file(file);
    }
    result
}

/// Answers the browser until the last frame has come.
fn receive(
    film: &Film,
    page: &str,
    (server, mut browser): (&Server, Browser),
    writer: &mut Writer,
    watch: &mut dyn FnMut(usize) -> bool,
) -> Result<(), String> {
    let (mut frames, mut heard) = (0, Instant::now());
    loop {
        if !watch(frames) {
            return Err("interrupted".into());
        }
        let request = server.recv_timeout(LOOK).map_err(|error| error.to_string())?;
        let Some(mut request) = request else {
            if let Some(reason) = browser.ended() {
                return Err(reason);
            }
            if heard.elapsed() > SILENCE {
                let seconds = SILENCE.as_secs();
                return Err(format!("the browser has drawn no frame for {seconds} s"));
            }
            continue;
        };
        heard = Instant::now();
        if *request.method() == Method::Get {
            answer(request, page)?;
            continue;
        }
        let mut bytes = Vec::new();
        request.as_reader().read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        let what = request.url().to_string();
        if what == "/failed" {
            return Err(format!("the browser cannot draw it: {}", String::from_utf8_lossy(&bytes)));
        }
        if what == "/end" {
            // The file is whole even if the browser no longer listens.
            let _ = answer(request, "");
            return match frames == film.times.len() {
                true => Ok(()),
                false => Err(format!("{frames} of {} frames have come", film.times.len())),
            };
        }
        writer.take(frames, film.size, &mut bytes, what == "/chunk/key")?;
        frames += 1;
        answer(request, "")?;
    }
}

fn answer(request: Request, text: &str) -> Result<(), String> {
    let html = Header::from_bytes("Content-Type", "text/html; charset=utf-8").expect("a header");
    let response = Response::from_string(text).with_header(html);
    request.respond(response).map_err(|error| format!("the browser does not listen: {error}"))
}
