import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { describeGrant } from '../src/describe.js';
import { GrantSubject } from '../src/grant-subject.js';
import { replaceMethod } from '../src/replace-method.js';
import { startTestService } from '../src/test-service.js';
import { grantThat, sound } from './support/ticket.grant.js';

const valid = () => ({ ticket: '123456' });
const { grant, ...extension } = grantThat(sound);
const kit = { ...extension, valid, forged: () => [{ ticket: '654321' }], anyOrganization: true };

const CONSOLE_METHODS = ['log', 'info', 'warn', 'error', 'debug', 'trace', 'dir'] as const;

/** The globals that the kit replaces while it runs, and whether each is an own property of its object. */
const globals = () => [
  globalThis.fetch,
  Math.random,
  ...[process.stdout, process.stderr].flatMap((stream) => [stream.write, Object.hasOwn(stream, 'write')]),
  ...CONSOLE_METHODS.map((method) => Reflect.get(console, method)),
];
const before = globals();

/** Compares by identity, because `toEqual` treats two different functions as equal. */
function expectUntouched(): void {
  const now = globals();
  for (const [index, each] of before.entries()) expect(now[index]).toBe(each);
}

describe('the conformance kit leaves fetch, console, Math.random and the standard streams unchanged', () => {
  beforeEach(expectUntouched);
  afterEach(expectUntouched);

  it('when a service runs', async () => {
    const service = await startTestService();
    expectUntouched();
    await service.stop();
  });

  it('when a grant is tested, except while a rule is checked', async () => {
    const subject = await GrantSubject.open(grant, kit);
    expectUntouched();
    let writeDuringRule: unknown;
    const check = async () => {
      writeDuringRule = process.stdout.write;
      await subject.expectSuccess(await subject.create());
    };
    await subject.check({ title: 'any', check });
    expect(writeDuringRule).not.toBe(process.stdout.write);
    expectUntouched();
    await subject.close();
  });

  it('when a rule fails', async () => {
    const subject = await GrantSubject.open(grant, kit);
    const check = () => Promise.reject(new Error('broken'));
    await expect(subject.check({ title: 'any', check })).rejects.toThrow('broken');
    expectUntouched();
    await subject.close();
  });

  it('when the service does not start', async () => {
    const environment = { LOG_LEVEL: 'no-such-level' };
    await expect(GrantSubject.open(grant, { ...kit, environment })).rejects.toThrow('LOG_LEVEL');
  });
});

it('a replacement of a global method leaves that of other code', () => {
  const target = { method: () => 'original' };
  const restore = replaceMethod(target, 'method', () => () => 'replaced');
  target.method = () => 'of other code';
  restore();
  expect(target.method()).toBe('of other code');
});

describeGrant(grant, kit);

describe('after describeGrant', () => {
  it('fetch, console, Math.random and the standard streams are unchanged', expectUntouched);
});
