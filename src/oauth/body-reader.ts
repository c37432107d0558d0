import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { OAuthError } from './oauth-error.js';

const MAX_BODY_BYTES = 16 * 1024;
/** A larger body is read and discarded up to this size, so that the client receives the error response. */
const MAX_DISCARDED_BYTES = 1024 * 1024;

/**
 * Reads a whole request body as text, for any Content-Type: at most 16 KiB of UTF-8 (protocol §2.4).
 *
 * @throws OAuthError `payload_too_large`; `invalid_request` if the body is compressed, broken or too slow;
 *   `Invalid message` if it is not UTF-8
 */
export function readBody(request: IncomingMessage): Promise<string> {
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity') return Promise.reject(OAuthError.unsupportedEncoding());
  return new Promise((resolve, reject) => {
    const body = new BodyBytes();
    const rejectIfBroken = () => request.broken && reject(OAuthError.brokenRequest(request.broken));
    rejectIfBroken();
    request.once('broken', rejectIfBroken);
    request.on('data', (chunk: Buffer) => {
      body.add(chunk);
      if (body.length > MAX_DISCARDED_BYTES) {
        request.pause();
        reject(OAuthError.payloadTooLarge());
      }
    });
    request.once('end', () => {
      if (body.length > MAX_BODY_BYTES) return reject(OAuthError.payloadTooLarge());
      const bytes = body.bytes();
      if (isUtf8(bytes)) resolve(bytes.toString('utf8'));
      else reject(OAuthError.invalidMessage());
    });
    request.once('error', () => reject(OAuthError.invalidRequest('body: incomplete')));
  });
}

/** Collects at most MAX_BODY_BYTES in one buffer. A list of chunks would take 6 MB for a body sent byte by byte. */
class BodyBytes {
  length = 0;
  private buffer: Buffer | undefined;

  add(chunk: Buffer): void {
    const offset = this.length;
    this.length += chunk.length;
    if (this.length > MAX_BODY_BYTES) return;
    if (offset === 0) {
      this.buffer = chunk; // Most bodies are one chunk, which needs no copy.
      return;
    }
    if (this.buffer?.length !== MAX_BODY_BYTES) {
      const first = this.buffer;
      this.buffer = Buffer.allocUnsafeSlow(MAX_BODY_BYTES);
      first?.copy(this.buffer);
    }
    chunk.copy(this.buffer, offset);
  }

  bytes(): Buffer {
    return this.buffer?.subarray(0, this.length) ?? Buffer.alloc(0);
  }
}
