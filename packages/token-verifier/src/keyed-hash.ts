/** A hash of 64 bits, as two unsigned integers of 32 bits. */
export interface Hash {
  low: number;
  high: number;
}

const WORD_ROUND_COUNT = 2;
const FINAL_ROUND_COUNT = 4;

/**
 * HalfSipHash-2-4, a variant of SipHash for 32 bits, of the UTF-16 code units of a text. Without the key, an attacker
 * cannot find texts with the same hash. The function works with integers of 32 bits, so it is fast in JavaScript.
 */
export function keyedHash([key0, key1]: readonly [key0: number, key1: number], text: string): Hash {
  const lastWordIndex = text.length >> 1;
  let [v0, v1, v2, v3] = [key0, key1 ^ 0xee, key0 ^ 0x6c796765, key1 ^ 0x74656462];
  let low = 0;
  for (let index = 0; index <= lastWordIndex + 2; index++) {
    const word = index <= lastWordIndex ? wordAt(text, index, lastWordIndex) : 0;
    if (index === lastWordIndex + 1) v2 ^= 0xee;
    if (index === lastWordIndex + 2) {
      low = v1 ^ v3;
      v1 ^= 0xdd;
    }
    v3 ^= word;
    for (let round = index <= lastWordIndex ? WORD_ROUND_COUNT : FINAL_ROUND_COUNT; round > 0; round--) {
      v0 = (v0 + v1) | 0;
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
      v0 = (v0 << 16) | (v0 >>> 16);
      v2 = (v2 + v3) | 0;
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
      v2 = (v2 << 16) | (v2 >>> 16);
    }
    v0 ^= word;
  }
  return { low: low >>> 0, high: (v1 ^ v3) >>> 0 };
}

/** Two code units. The last word also has the number of bytes of the text. */
function wordAt(text: string, index: number, lastIndex: number): number {
  if (index < lastIndex) return text.charCodeAt(2 * index) | (text.charCodeAt(2 * index + 1) << 16);
  return (text.length << 25) | (text.length % 2 === 1 ? text.charCodeAt(text.length - 1) : 0);
}
