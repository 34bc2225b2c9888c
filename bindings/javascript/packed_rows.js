// Reads packed rows of version 1 in place: new PackedRows(buffer).row(3) is an array of strings.
//
// `buffer` is an ArrayBuffer or a typed array (a file, a fetch, the memory of WebAssembly). Nothing is copied
// but the strings that are asked for. What is no packed rows is a RangeError, text that is no UTF-8 a TypeError.
"use strict";

const MAGIC = 0x4f435356;
const HEADER_BYTES = 24;
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

class PackedRows {
  constructor(buffer) {
    this.bytes = ArrayBuffer.isView(buffer)
      ? new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength)
      : new Uint8Array(buffer);
    this.view = new DataView(this.bytes.buffer, this.bytes.byteOffset, this.bytes.byteLength);
    if (this.bytes.length < HEADER_BYTES) throw new RangeError(`${this.bytes.length} bytes are no packed rows`);
    if (this.view.getUint32(0, true) !== MAGIC) throw new RangeError("no packed rows: another magic number");
    const version = this.view.getUint32(4, true);
    if (version !== 1) throw new RangeError(`packed rows of version ${version}, not 1`);
    this.length = this.view.getUint32(8, true);
    this.columns = this.view.getUint32(12, true);
    const total = this.view.getBigUint64(16, true);
    if (total !== BigInt(this.bytes.length)) throw new RangeError(`${total} bytes are promised, there are ${this.bytes.length}`);
    if (HEADER_BYTES + 4 * this.length > this.bytes.length) throw new RangeError(`offsets of ${this.length} rows do not fit`);
  }

  *fields(row) {
    if (!(row >= 0 && row < this.length)) throw new RangeError(`row ${row} of ${this.length}`);
    let at = this.view.getUint32(HEADER_BYTES + 4 * row, true);
    for (let field = 0; field < this.columns; field++) {
      const end = at + 2 <= this.bytes.length ? at + 2 + this.view.getUint16(at, true) : Infinity;
      if (end > this.bytes.length) throw new RangeError(`row ${row}, field ${field} at ${at} ends after the buffer`);
      yield decoder.decode(this.bytes.subarray(at + 2, end));
      at = end;
    }
  }

  row(row) { return [...this.fields(row)]; }
  *[Symbol.iterator]() { for (let row = 0; row < this.length; row++) yield this.row(row); }
}

module.exports = { PackedRows };
