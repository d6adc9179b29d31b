// Frames of a motion as pixels or as coded video, sent one after the other to where the page came from.

async function send(what, body) {
  const answer = await fetch(what, { method: "POST", body });
  if (!answer.ok) throw new Error(`${what} was refused`);
}

// A coder of frames whose chunks are sent in order.
function coder(width, height, rate) {
  let sent = Promise.resolve(), failed = null;
  const encoder = new VideoEncoder({
    output: (chunk) => {
      const bytes = new Uint8Array(chunk.byteLength);
      chunk.copyTo(bytes);
      sent = sent.then(() => send(`/chunk/${chunk.type}`, bytes));
    },
    error: (error) => { failed = error; },
  });
  return {
    // Level 4 takes frames up to 1920x1080, level 5.1 up to 4096x2304.
    configure: async () => {
      for (const codec of ["avc1.640028", "avc1.640033"]) {
        const wanted = { codec, width, height, framerate: rate, bitrate: Math.round(width * height * rate * 0.12), latencyMode: "realtime", avc: { format: "annexb" } };
        if ((await VideoEncoder.isConfigSupported(wanted)).supported) { encoder.configure(wanted); return; }
      }
      throw new Error(`this browser codes no H.264 of ${width}x${height}: write a GIF`);
    },
    take: async (canvas, k) => {
      const frame = new VideoFrame(canvas, { timestamp: Math.round((1e6 * k) / rate), duration: Math.round(1e6 / rate) });
      encoder.encode(frame, { keyFrame: k % Math.round(2 * rate) === 0 });
      frame.close();
      while (encoder.encodeQueueSize > 4 && !failed) await new Promise((done) => setTimeout(done, 2));
      if (failed) throw failed;
    },
    finish: async () => { await encoder.flush(); await sent; },
  };
}

async function film() {
  const { motion, film: { width, height, rate, times, dark, coded, unit } } = JSON.parse(document.getElementById("content").textContent);
  const buffer = await unpack();
  for (const name of ["times", "positions", "rotations"]) motion[name] = numbers(buffer, motion[name]);
  document.documentElement.classList.toggle("dark", dark);
  const stage = document.getElementById("stage");
  stage.style.width = `${width}px`; stage.style.height = `${height}px`;
  const view = new MotionView(stage, motion, new Forms(motion, buffer), 0);
  const whole = document.createElement("canvas"), pen = whole.getContext("2d", { willReadFrequently: !coded });
  whole.width = width; whole.height = height;
  const video = coded ? coder(width, height, rate) : null;
  if (video) await video.configure();
  for (let k = 0; k < times.length; k++) {
    view.at(times[k]);
    pen.fillStyle = colour("--card"); pen.fillRect(0, 0, width, height);
    pen.drawImage(stage, 0, 0, width, height);
    pen.font = "14px system-ui, sans-serif"; pen.fillStyle = colour("--soft");
    pen.fillText(`t = ${short(times[k])}${unit}`, 14, height - 14);
    if (video) await video.take(whole, k);
    else await send("/frame", pen.getImageData(0, 0, width, height).data);
  }
  if (video) await video.finish();
  await send("/end");
}

film().catch((error) => send("/failed", error.message));
