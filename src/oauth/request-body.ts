import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { headerValues } from '../platform/request-context/request-context.js';
import { withoutByteOrderMark } from '../platform/validation/text-rules.js';
import { parseForm } from './form.js';
import { OAuthError } from './oauth-error.js';

const MAX_BODY_BYTES = 16 * 1024;
/** A larger body is read and discarded up to this size, so that the client receives the error response. */
const MAX_DISCARDED_BYTES = 1024 * 1024;
/** No parameter of a grant is deeper. A deeper body could exhaust the stack of code that recurses over it. */
const MAX_NESTING_LEVELS = 16;

const QUOTE_CHAR_CODE = 0x22;
const BACKSLASH_CHAR_CODE = 0x5c;
const ESCAPE = '\\';

/** How a route reads its body. */
export interface BodyOptions {
  /** Whether the body may also be `application/x-www-form-urlencoded`, besides JSON. */
  form?: boolean;
  /** Whether an empty body counts as a body without parameters. */
  mayBeEmpty?: boolean;
}

type Parameters = Record<string, unknown>;

type RequestWithBody = IncomingMessage & { body?: Parameters };

interface BodyReading extends Omit<BodyOptions, 'form'> {
  /** As in `BodyOptions`. A function decides by the parameters of the form; `only` rejects JSON. */
  form?: boolean | 'only' | ((parameters: URLSearchParams) => boolean);
}

/**
 * Reads the parameters of a request body, not yet validated (protocol §2.4). Keeps them as `request.body`, so that a
 * guard and the route can read them. @throws OAuthError
 */
export async function readBody(request: RequestWithBody, options: BodyReading = {}): Promise<Parameters> {
  request.body ??= await parseBody(request, options);
  return request.body;
}

async function parseBody(request: IncomingMessage, { mayBeEmpty, form }: BodyReading): Promise<Parameters> {
  const text = withoutByteOrderMark(await readText(request));
  if (mayBeEmpty && text === '') return {};
  return isForm(text, request, form) ? parseForm(text) : parseJsonObject(text);
}

/** `curl -d` labels JSON as a form too. Such a body is read as JSON. */
function isForm(text: string, request: IncomingMessage, form: BodyReading['form']): boolean {
  if (form === 'only') return true;
  if (!form) return false;
  const [type = '', ...others] = headerValues(request, 'content-type');
  if (others.length > 0) throw OAuthError.invalidRequest('Content-Type: given more than once');
  if (!type.toLowerCase().startsWith('application/x-www-form-urlencoded')) return false;
  try {
    JSON.parse(text);
    return false;
  } catch {
    return form === true || form(new URLSearchParams(text));
  }
}

/** Reads a whole body as text, for any Content-Type: at most 16 KiB of UTF-8. @throws OAuthError */
export function readText(request: IncomingMessage): Promise<string> {
  const { 'content-encoding': encoding = 'identity' } = request.headers;
  if (encoding.toLowerCase() !== 'identity') return Promise.reject(OAuthError.unsupportedEncoding());
  return new Promise((resolve, reject) => {
    /**
     * The first chunk, or a copy of all chunks: a list of them would take 6 MB for a body that is sent byte by byte.
     */
    let body: Buffer = Buffer.alloc(0);
    let length = 0;
    const rejectIfBroken = () => request.broken && reject(OAuthError.brokenRequest(request.broken));
    rejectIfBroken();
    request.once('broken', rejectIfBroken);
    request.on('data', (chunk: Buffer) => {
      if (length === 0) body = chunk;
      else if (length + chunk.length <= MAX_BODY_BYTES) {
        if (body.length < MAX_BODY_BYTES) body = Buffer.concat([body], MAX_BODY_BYTES);
        chunk.copy(body, length);
      }
      length += chunk.length;
      if (length > MAX_DISCARDED_BYTES) {
        request.pause();
        reject(OAuthError.payloadTooLarge());
      }
    });
    request.once('end', () => {
      if (length > MAX_BODY_BYTES) return reject(OAuthError.payloadTooLarge());
      const bytes = body.subarray(0, length);
      if (isUtf8(bytes)) resolve(bytes.toString('utf8'));
      else reject(OAuthError.invalidMessage());
    });
    request.once('error', () => reject(OAuthError.invalidRequest('body: incomplete')));
  });
}

/** @throws OAuthError also for a repeated name, even if an escape sequence disguises it (protocol §2.4) */
export function parseJsonObject(text: string): Record<string, unknown> {
  const value = parseJson(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw OAuthError.invalidRequest('body: must be a JSON object');
  const { members, depth } = scan(text);
  if (depth > MAX_NESTING_LEVELS)
    throw OAuthError.invalidRequest(`body: nested deeper than ${MAX_NESTING_LEVELS} levels`);
  const names = new Set(members.map(({ quotedName }) => decodeName(quotedName)));
  if (names.size < members.length) throw OAuthError.invalidRequest('body: a parameter is given more than once');
  if (!members.some(({ quotedName }) => quotedName.includes(ESCAPE))) return value as Record<string, unknown>;
  // V8 in Node 24 can mistake a name with escapes for another name that it parsed before. A name parsed alone is right.
  return Object.fromEntries(
    members.map(({ quotedName, valueText }) => [decodeName(quotedName), JSON.parse(valueText)]),
  );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw OAuthError.invalidMessage();
  }
}

interface Member {
  quotedName: string;
  valueText: string;
}

function decodeName(quotedName: string): string {
  return quotedName.includes(ESCAPE) ? JSON.parse(quotedName) : quotedName.slice(1, -1);
}

/** Scans valid JSON: the members of the outermost object, repeated names included, and the depth of nesting. */
function scan(json: string): { members: Member[]; depth: number } {
  const members: Member[] = [];
  let quotedName = '';
  let start = 0;
  let level = 0;
  let depth = 0;
  for (let at = 0; at < json.length; at++) {
    switch (json.charCodeAt(at)) {
      case QUOTE_CHAR_CODE:
        at = endOfString(json, at);
        break;
      case 0x7b: // {
      case 0x5b: // [
        if (++level === 1) start = at + 1;
        depth = Math.max(depth, level);
        break;
      case 0x7d: // }
      case 0x5d: // ]
        if (--level === 0 && quotedName) members.push({ quotedName, valueText: json.slice(start, at) });
        break;
      case 0x3a: // :
        if (level !== 1) break;
        quotedName = json.slice(start, at).trim();
        start = at + 1;
        break;
      case 0x2c: // ,
        if (level !== 1) break;
        members.push({ quotedName, valueText: json.slice(start, at) });
        start = at + 1;
    }
  }
  return { members, depth };
}

function endOfString(json: string, start: number): number {
  let at = start + 1;
  while (json.charCodeAt(at) !== QUOTE_CHAR_CODE) at += json.charCodeAt(at) === BACKSLASH_CHAR_CODE ? 2 : 1;
  return at;
}
