import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { authorizationOf } from '../../src/http/callers/authorization.js';
import { readBasicCredentials } from '../../src/http/callers/client-authentication.js';

const basic = (text: string | Buffer) => `Basic ${Buffer.from(text).toString('base64')}`;
const read = (header?: string) =>
  readBasicCredentials(authorizationOf({ rawHeaders: header === undefined ? [] : ['Authorization', header] }));
const form = (text: string) => new URLSearchParams({ '': text }).toString().slice(1);

describe('Basic credentials of a client (RFC 6749 §2.3.1)', () => {
  it('are decoded for any client_id and secret', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), (id, secret) => {
        expect(read(basic(`${form(id)}:${form(secret)}`))).toEqual({ id, secret });
      }),
    );
  });

  it.each<[string, string, object]>([
    ['the scheme in another case', basic('id:secret').replace('Basic', 'bAsIc'), { id: 'id', secret: 'secret' }],
    ['two spaces', basic('id:secret').replace(' ', '  '), { id: 'id', secret: 'secret' }],
    ['no secret', basic('id:'), { id: 'id', secret: '' }],
    ['a colon in the secret', basic('id:a:b'), { id: 'id', secret: 'a:b' }],
    ['an encoded colon in the id', basic('a%3Ab:secret'), { id: 'a:b', secret: 'secret' }],
    ['a line break in the secret', basic('id:a\nb'), { id: 'id', secret: 'a\nb' }],
    ['base64 without padding', basic('id:secre').replaceAll('=', ''), { id: 'id', secret: 'secre' }],
  ])('are read with %s', (_, header, credentials) => {
    expect(read(header)).toEqual(credentials);
  });

  it.each([
    ['no header', undefined],
    ['the scheme alone', 'Basic'],
    ['another scheme', basic('id:secret').replace('Basic', 'Bearer')],
    ['a second pair', `${basic('id:secret')}, ${basic('id:secret')}`],
    ['a character outside base64', `${basic('id:secret')}!`],
    ['base64url', basic('id:ÿÿ>?').replaceAll('+', '-').replaceAll('/', '_')],
    ['a line break at its end', `${basic('id:secret')}\n`],
    ['bytes that are no UTF-8', basic(Buffer.from('id:\u00ff', 'latin1'))],
    ['no colon', basic('id')],
    ['a percent sign that encodes nothing', basic('id:100%')],
    ['percent-encoded bytes that are no UTF-8', basic('id:%ff')],
  ])('are not accepted with %s', (_, header) => {
    expect(read(header)).toBeUndefined();
  });

  it('are decoded or rejected without an exception, for any header', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => void read(`Basic ${text}`)));
    const bytes = fc.uint8Array().map((each) => basic(Buffer.from(each)));
    fc.assert(fc.property(bytes, (header) => void read(header)));
  });
});
