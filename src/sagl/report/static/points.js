// Drawing many points: WebGL where there is any, else the pixels of a 2-D canvas.
//
// A renderer has setPositions(uint16 x, y, x, y, ...), setColours(bytes r, g, b, a, ...)
// and draw(camera, size), where size is a point's diameter in device pixels.

const VERTEX_SHADER = `
attribute vec2 position;
attribute vec4 colour;
uniform vec2 scale, shift;
uniform float size;
varying vec4 tint;
void main() {
  gl_Position = vec4(position * scale + shift, 0.0, 1.0);
  gl_PointSize = size;
  tint = colour;
}`;

const FRAGMENT_SHADER = `
precision highp float;
varying vec4 tint;
uniform float size;
void main() {
  float edge = (0.5 - length(gl_PointCoord - 0.5)) * size;
  float alpha = tint.a * clamp(edge + 0.5, 0.0, 1.0);
  if (alpha <= 0.0) discard;
  gl_FragColor = vec4(tint.rgb * alpha, alpha);
}`;

const WEBGL_OPTIONS = {
  antialias: false,
  premultipliedAlpha: true,
  preserveDrawingBuffer: true, // or it is blank on paper
};

// WebGL without a graphics card is slower than pixels once there are so many points.
const MANY_POINTS = 20_000;

function createRenderer(canvas, n) {
  // A canvas that was asked for WebGL gives nothing else any more: try on another.
  const trial = document.createElement("canvas").getContext("webgl", WEBGL_OPTIONS);
  const slow = !trial || (n > MANY_POINTS && isSoftware(trial));
  if (slow || !linkProgram(trial)) return pixelRenderer(canvas);
  trial.getExtension("WEBGL_lose_context")?.loseContext();
  return webglRenderer(canvas, canvas.getContext("webgl", WEBGL_OPTIONS));
}

function isSoftware(gl) {
  const info = gl.getExtension("WEBGL_debug_renderer_info");
  const name = gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER);
  return /swiftshader|llvmpipe|software|basic render/i.test(name);
}

// The program, or null where it cannot be compiled.
function linkProgram(gl) {
  const program = gl.createProgram();
  for (const [kind, source] of [
    [gl.VERTEX_SHADER, VERTEX_SHADER],
    [gl.FRAGMENT_SHADER, FRAGMENT_SHADER],
  ]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  return gl.getProgramParameter(program, gl.LINK_STATUS) ? program : null;
}

function webglRenderer(canvas, gl) {
  let positions, colours, program, positionBuffer, colourBuffer, redraw;

  function prepare() {
    program = linkProgram(gl);
    gl.useProgram(program);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    positionBuffer = bind("position", 2, gl.UNSIGNED_SHORT);
    colourBuffer = bind("colour", 4, gl.UNSIGNED_BYTE);
  }

  function bind(name, width, type) {
    const buffer = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    const place = gl.getAttribLocation(program, name);
    gl.enableVertexAttribArray(place);
    gl.vertexAttribPointer(place, width, type, true, 0, 0);
    return buffer;
  }

  function fill(buffer, values) {
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, values, gl.DYNAMIC_DRAW);
  }

  canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
  canvas.addEventListener("webglcontextrestored", () => {
    prepare();
    fill(positionBuffer, positions);
    fill(colourBuffer, colours);
    if (redraw) redraw();
  });
  prepare();

  return {
    kind: "webgl",
    setPositions(values) {
      positions = values;
      fill(positionBuffer, values);
    },
    setColours(values) {
      colours = values;
      fill(colourBuffer, values);
    },
    draw(camera, size) {
      redraw = () => this.draw(camera, size);
      const { width, height } = canvas;
      const x = (2 * camera.scale) / width;
      const y = (2 * camera.scale) / height;
      gl.viewport(0, 0, width, height);
      gl.uniform2f(gl.getUniformLocation(program, "scale"), x, y);
      gl.uniform2f(
        gl.getUniformLocation(program, "shift"),
        -camera.x * x,
        -camera.y * y,
      );
      gl.uniform1f(gl.getUniformLocation(program, "size"), size);
      gl.clearColor(0, 0, 0, 0);
      gl.clear(gl.COLOR_BUFFER_BIT);
      gl.drawArrays(gl.POINTS, 0, positions.length / 2);
    },
  };
}

function pixelRenderer(canvas) {
  const context = canvas.getContext("2d");
  let positions, colours;
  return {
    kind: "2d",
    setPositions(values) {
      positions = values;
    },
    setColours(values) {
      colours = new Uint32Array(values.buffer.slice(0));
    },
    draw(camera, size) {
      const { width, height } = canvas;
      if (!width || !height) return;
      const image = context.createImageData(width, height);
      const pixels = new Uint32Array(image.data.buffer);
      const side = Math.max(1, Math.round(size * 0.85)); // squares look larger
      const [x0, y0] = camera.toScreen(0, 0).map((place) => place - side / 2);
      const unit = camera.scale / 65535;
      for (const dimmed of [true, false]) {
        for (let i = 0; i < colours.length; i++) {
          const colour = colours[i];
          if (colour >>> 24 < 128 !== dimmed) continue; // bright ones on top
          const x = Math.round(x0 + positions[2 * i] * unit);
          const y = Math.round(y0 - positions[2 * i + 1] * unit);
          const left = Math.max(0, x);
          const right = Math.min(width, x + side);
          const bottom = Math.min(height, y + side);
          for (let row = Math.max(0, y); row < bottom; row++) {
            for (let p = row * width + left; p < row * width + right; p++) {
              pixels[p] = colour;
            }
          }
        }
      }
      context.putImageData(image, 0, 0);
    },
  };
}
