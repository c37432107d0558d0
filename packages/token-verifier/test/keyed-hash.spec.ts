import { describe, expect, it } from 'vitest';
import { keyedHash } from '../src/keyed-hash.js';

/** The text whose UTF-16 code units have the bytes 0, 1, 2, … */
const textOf = (byteCount: number) =>
  Buffer.from(Array.from({ length: byteCount }, (_, byte) => byte)).toString('utf16le');

function hex(key: [number, number], text: string): string {
  const { low, high } = keyedHash(key, text);
  const bytes = Buffer.alloc(8);
  bytes.writeUInt32LE(low, 0);
  bytes.writeUInt32LE(high, 4);
  return bytes.toString('hex');
}

describe('the keyed hash', () => {
  it.each([
    [0, '218d1f59b9b83cc8'],
    [2, '064f39ef7c50eb57'],
    [4, 'd5e78a175be52ea1'],
    [6, 'ce3e91358aa2bc25'],
    [8, 'edfee820bce4858c'],
    [22, 'e20103fa1ba776ef'],
    [62, 'f90b3ab572d46693'],
  ])('of %i bytes is that of the test vectors of HalfSipHash-2-4', (byteCount, expected) => {
    expect(hex([0x03020100, 0x07060504], textOf(byteCount))).toBe(expected);
  });

  it('depends on both parts of the key', () => {
    const hashes = [hex([1, 2], 'token'), hex([3, 2], 'token'), hex([1, 3], 'token')];
    expect(new Set(hashes).size).toBe(3);
  });
});
