/** A parsed HTTP response. */
export interface Reply {
  status: number;
  /** Names are in lower case. Repeated headers are repeated. */
  headers: [name: string, value: string][];
  text: string;
}

export function replyHeader({ headers }: Reply, name: string): string | undefined {
  return headers.find(([each]) => each === name)?.[1];
}

export function replyCookies({ headers }: Reply): string[] {
  return headers.filter(([name]) => name === 'set-cookie').map(([, value]) => value);
}

/**
 * Parses the first response in the received bytes.
 *
 * @returns the response and its length in bytes, or `undefined` if it is incomplete
 * @throws Error if the bytes are not an HTTP response
 */
export function takeReply(bytes: Buffer, isToHead: boolean): { reply: Reply; length: number } | undefined {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const [first = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n');
  const [, code] = /^HTTP\/1\.1 (\d{3})(?: |$)/.exec(first) ?? [];
  if (code === undefined) throw new Error(`no status line: ${JSON.stringify(first.slice(0, 200))}`);
  const status = Number(code);
  const headers = lines.map(headerLine);
  const reply: Reply = { status, headers, text: '' };
  const start = end + 4;
  if (isToHead || status === 204 || status === 304 || status < 200) return { reply, length: start };
  const length = Number(replyHeader(reply, 'content-length'));
  if (!Number.isInteger(length)) throw new Error(`a response without a length: ${JSON.stringify(headers)}`);
  if (bytes.length < start + length) return undefined;
  return { reply: { ...reply, text: bytes.toString('utf8', start, start + length) }, length: start + length };
}

function headerLine(line: string): [name: string, value: string] {
  const colon = line.indexOf(':');
  if (colon < 1) throw new Error(`no header: ${JSON.stringify(line)}`);
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
}
