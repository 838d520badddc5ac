// Draw an image with the pointer and turn it into pixels and features.

/** Let people draw white strokes on a black canvas; return functions that clear and read it. */
export function makeDrawable(canvas) {
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const clear = () => {
    pen.fillStyle = "#000";
    pen.fillRect(0, 0, canvas.width, canvas.height);
  };
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    const scale = canvas.width / box.width;
    return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
  };
  canvas.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    canvas.setPointerCapture(event.pointerId);
    pen.strokeStyle = "#fff";
    pen.lineWidth = canvas.width / 6;
    pen.lineCap = "round";
    pen.lineJoin = "round";
    pen.beginPath();
    pen.moveTo(...place(event));
    pen.lineTo(...place(event));
    pen.stroke();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!canvas.hasPointerCapture(event.pointerId)) return;
    pen.lineTo(...place(event));
    pen.stroke();
  });
  clear();
  return { clear, read: (height, width) => pixelsOf(canvas, height, width) };
}

/** Return the drawing, cropped and fitted into height x width, as brightness from 0 to 1. */
export function pixelsOf(canvas, height, width) {
  const box = inkBox(canvas);
  if (!box) return null;
  // Digits of 8 x 8 pixels fill their image; larger images have a margin of a seventh.
  const margin = height > 10 ? 1 / 7 : 0;
  const small = document.createElement("canvas");
  const fine = 8; // average blocks of 8 x 8
  small.width = width * fine;
  small.height = height * fine;
  const pen = small.getContext("2d");
  pen.fillRect(0, 0, small.width, small.height);
  const room = 1 - 2 * margin;
  const scale = Math.min((small.width * room) / box.width, (small.height * room) / box.height);
  const [w, h] = [box.width * scale, box.height * scale];
  const [x, y] = [(small.width - w) / 2, (small.height - h) / 2];
  pen.drawImage(canvas, box.left, box.top, box.width, box.height, x, y, w, h);
  const { data } = pen.getImageData(0, 0, small.width, small.height);
  const found = new Float32Array(height * width);
  for (let row = 0; row < small.height; row += 1) {
    for (let column = 0; column < small.width; column += 1) {
      const cell = Math.floor(row / fine) * width + Math.floor(column / fine);
      found[cell] += data[(row * small.width + column) * 4] / 255 / fine ** 2;
    }
  }
  return found;
}

function inkBox(canvas) {
  const { data, width, height } = canvas
    .getContext("2d")
    .getImageData(0, 0, canvas.width, canvas.height);
  let [left, top, right, bottom] = [width, height, -1, -1];
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      if (data[(y * width + x) * 4] > 100) {
        left = Math.min(left, x);
        right = Math.max(right, x);
        top = Math.min(top, y);
        bottom = Math.max(bottom, y);
      }
    }
  }
  return right < 0 ? null : { left, top, width: right - left + 1, height: bottom - top + 1 };
}

/** Return pixels as a picture for the page. */
export function pictureOf(pixels, height, width) {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(width, height);
  pixels.forEach((value, i) => {
    image.data.set([value * 255, value * 255, value * 255, 255], i * 4);
  });
  pen.putImageData(image, 0, 0);
  return canvas.toDataURL("image/png");
}

/** Return the features of pixels, as the task computes them. */
export function featuresOf(pixels, { mean, deviation }) {
  return Float32Array.from(pixels, (value, i) => (value - mean[i % mean.length]) / deviation);
}
