import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { describeGrant } from '../../src/testing/describe-grant.js';
import { GrantTestContext } from '../../src/testing/grant-test-context.js';
import { startTestService } from '../../src/testing/test-service.js';
import { grantThat, sound } from '../support/broken-grants/ticket.grant.js';

const valid = () => ({ ticket: '123456' });
const { grant, modules } = grantThat(sound);

const CONSOLE_METHODS = ['log', 'info', 'warn', 'error', 'debug', 'trace', 'dir'] as const;

/** The globals that the kit replaces while it runs, and whether each is an own property of its object. */
const globals = () => [
  globalThis.fetch,
  ...[process.stdout, process.stderr].flatMap((stream) => [stream.write, Object.hasOwn(stream, 'write')]),
  ...CONSOLE_METHODS.map((method) => Reflect.get(console, method)),
];
const before = globals();

/** Compares by identity, because `toEqual` treats two different functions as equal. */
function expectUntouched(): void {
  const now = globals();
  for (const [index, each] of before.entries()) expect(now[index]).toBe(each);
}

describe('the conformance kit leaves fetch, console and the standard streams unchanged', () => {
  beforeEach(expectUntouched);
  afterEach(expectUntouched);

  it('when a grant was tested', async () => {
    const context = await GrantTestContext.open(grant, { modules, valid });
    expect(globalThis.fetch).not.toBe(before[0]);
    expect(process.stdout.write).not.toBe(before[1]);
    await context.expectToken(await context.body());
    await context.close();
  });

  it('when no module provides the grant', async () => {
    await expect(GrantTestContext.open(grantThat(sound).grant, { valid })).rejects.toThrow('no module provides it');
  });

  it('when the service does not start', async () => {
    const environment = { LOG_LEVEL: 'no-such-level' };
    await expect(GrantTestContext.open(grant, { modules, valid, environment })).rejects.toThrow('LOG_LEVEL');
  });

  it('when two services run at the same time, whichever stops first', async () => {
    const [first, second] = [await startTestService(), await startTestService()];
    const context = await GrantTestContext.open(grant, { modules, valid });
    await first.stop();
    expect(globalThis.fetch).not.toBe(before[0]);
    await context.close();
    await second.stop();
  });

  it('when other code replaced fetch meanwhile: the kit keeps that replacement', async () => {
    const service = await startTestService();
    const wrapped = globalThis.fetch;
    const replacement: typeof fetch = (...parameters) => wrapped(...parameters);
    globalThis.fetch = replacement;
    await service.stop();
    expect(globalThis.fetch).toBe(replacement);
    globalThis.fetch = before[0] as typeof fetch;
  });
});

describeGrant(grant, { modules, valid });

describe('after describeGrant', () => {
  it('fetch, console and the standard streams are unchanged', expectUntouched);
});
