// WebGL renderer. Two adjacent maps are bound at a time and interpolated in the vertex shader, so that moving the
// slider changes a single uniform.

const VERTEX = `#version 300 es
in vec2 here;
in vec2 there;
in vec4 colour;
uniform float share;
uniform vec2 centre;
uniform vec2 scale;
uniform float size;
uniform vec3 paper;
uniform float ink;
flat out vec4 tint;
flat out float width;
void main() {
  vec2 place = (mix(here, there, share) - centre) * scale;
  bool lit = colour.a > 0.5;
  gl_Position = vec4(place, lit ? 0.0 : 0.5, 1.0);
  width = lit ? size : max(1.0, size * 0.8);
  gl_PointSize = width + 1.0;
  tint = lit ? vec4(colour.rgb, ink) : vec4(mix(paper, colour.rgb, 0.18), ink);
}`;

const FRAGMENT = `#version 300 es
precision mediump float;
flat in vec4 tint;
flat in float width;
out vec4 result;
void main() {
  float away = length(gl_PointCoord - 0.5) * (width + 1.0);
  float alpha = clamp(0.5 * width + 0.5 - away, 0.0, 1.0) * tint.a;
  result = vec4(tint.rgb * alpha, alpha);
}`;

const MAX_EMULATED = 50000; // points; more are drawn faster without WebGL where it is emulated on the CPU

export class Points {
  /** A renderer for a canvas, or null if the browser has no WebGL 2 that is worth using. */
  static on(canvas, places, pixels) {
    const gl = canvas.getContext("webgl2", { alpha: false, antialias: false, powerPreference: "high-performance" });
    if (!gl) return null;
    const names = gl.getExtension("WEBGL_debug_renderer_info");
    const renderer = gl.getParameter(names ? names.UNMASKED_RENDERER_WEBGL : gl.RENDERER);
    const emulated = /swiftshader|llvmpipe|softpipe|software|basic render/i.test(renderer);
    return emulated && places.n > MAX_EMULATED ? null : new Points(gl, places, pixels, emulated);
  }

  constructor(gl, places, pixels, emulated) {
    this.gl = gl;
    this.places = places;
    this.colours = new Uint8Array(pixels.buffer);
    this.emulated = emulated;
    /** @type {Record<string, any>} */
    this.uniform = {};
    /** @type {Record<string, any>} */
    this.attribute = {};
    this.prepare();
  }

  /** Create everything that is lost with a WebGL context. */
  prepare() {
    const { gl } = this;
    const program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost()) {
      throw new Error(gl.getProgramInfoLog(program));
    }
    gl.useProgram(program);
    this.uniform = Object.fromEntries(["share", "centre", "scale", "size", "ink", "paper"]
      .map((name) => [name, gl.getUniformLocation(program, name)]));
    this.attribute = Object.fromEntries(["here", "there", "colour"]
      .map((name) => [name, gl.getAttribLocation(program, name)]));
    this.place = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, this.place);
    gl.bufferData(gl.ARRAY_BUFFER, this.places.positions, gl.STATIC_DRAW);
    this.paint = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, this.paint);
    gl.bufferData(gl.ARRAY_BUFFER, this.colours, gl.DYNAMIC_DRAW);
    gl.vertexAttribPointer(this.attribute.colour, 4, gl.UNSIGNED_BYTE, true, 0, 0);
    for (const name in this.attribute) gl.enableVertexAttribArray(this.attribute[name]);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.enable(gl.DEPTH_TEST); // highlighted points are in front, in any drawing order
    gl.depthFunc(gl.LEQUAL);
    this.bound = -1;
  }

  /** Take over positions that have changed. */
  replace() {
    const { gl } = this;
    gl.bindBuffer(gl.ARRAY_BUFFER, this.place);
    gl.bufferSubData(gl.ARRAY_BUFFER, 0, this.places.positions);
  }

  recolour() {
    const { gl } = this;
    gl.bindBuffer(gl.ARRAY_BUFFER, this.paint);
    gl.bufferSubData(gl.ARRAY_BUFFER, 0, this.colours);
  }

  /** Bind the maps to the left and right of the slider position. */
  bind({ n, left, right }) {
    if (this.bound === left) return;
    const { gl } = this;
    gl.bindBuffer(gl.ARRAY_BUFFER, this.place);
    gl.vertexAttribPointer(this.attribute.here, 2, gl.UNSIGNED_SHORT, true, 0, 4 * n * left);
    gl.vertexAttribPointer(this.attribute.there, 2, gl.UNSIGNED_SHORT, true, 0, 4 * n * right);
    this.bound = left;
  }

  draw({ camera, paper, size, ink, ratio }) {
    const { gl, places } = this;
    this.bind(places);
    gl.viewport(0, 0, gl.drawingBufferWidth, gl.drawingBufferHeight);
    gl.clearColor(paper[0] / 255, paper[1] / 255, paper[2] / 255, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.uniform1f(this.uniform.share, places.share);
    gl.uniform2f(this.uniform.centre, camera.x, camera.y);
    gl.uniform2f(this.uniform.scale, (2 * camera.scale) / camera.width, (2 * camera.scale) / camera.height);
    gl.uniform1f(this.uniform.size, size * ratio);
    gl.uniform1f(this.uniform.ink, ink);
    gl.uniform3f(this.uniform.paper, paper[0] / 255, paper[1] / 255, paper[2] / 255);
    gl.drawArrays(gl.POINTS, 0, places.n);
  }
}
