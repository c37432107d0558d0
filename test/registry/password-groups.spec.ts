import { createRequire } from 'node:module';
import { afterAll, beforeEach, expect, it, vi } from 'vitest';
import { passwordGroups, unchangedPasswords } from '../../src/registry/file/password-groups.js';

/** The function with which `slowHash` computes each hash. */
const hashRaw = vi.spyOn(createRequire(import.meta.url)('@node-rs/argon2'), 'hashRaw');
afterAll(() => hashRaw.mockRestore());

const AGENT_COUNT = 100;
const passwords = Array.from({ length: AGENT_COUNT }, (_, index) => ({
  key: `agents/${index}@acme.example`,
  password: `password ${index}`,
  storedHash: `hash ${index}`,
}));
const changed = (more: object) => passwords.map((each, index) => (index === 7 ? { ...each, ...more } : each));

beforeEach(() => void hashRaw.mockClear());

it('knows every password of an unchanged file', async () => {
  const groups = await passwordGroups(passwords, null, new Set());
  expect((await unchangedPasswords(passwords, groups)).size).toBe(AGENT_COUNT);
});

it.each([
  ['a new password', { password: 'new password' }],
  ['a hash that was stored otherwise', { storedHash: 'other hash' }],
])('does not know a password with %s, but the passwords of other groups', async (_what, more) => {
  const groups = await passwordGroups(passwords, null, new Set());
  const unchanged = await unchangedPasswords(changed(more), groups);
  expect(unchanged.has(passwords[7]?.key ?? '')).toBe(false);
  expect(unchanged.size).toBeGreaterThan(AGENT_COUNT / 2);
  hashRaw.mockClear();
  const next = await passwordGroups(changed(more), groups, unchanged);
  expect(hashRaw).toHaveBeenCalledTimes(1);
  expect((await unchangedPasswords(changed(more), next)).size).toBe(AGENT_COUNT);
});

it('does not hash the groups of few passwords', async () => {
  const few = passwords.slice(0, 32);
  expect(await passwordGroups(few, null, new Set())).toBeNull();
  const groups = await passwordGroups(passwords, null, new Set());
  hashRaw.mockClear();
  expect((await unchangedPasswords(few, groups)).size).toBe(0);
  expect(hashRaw).not.toHaveBeenCalled();
});

it('salts the groups, so that equal passwords of two databases have different hashes', async () => {
  const [one, other] = [
    await passwordGroups(passwords, null, new Set()),
    await passwordGroups(passwords, null, new Set()),
  ];
  expect(one?.hashes).not.toEqual(other?.hashes);
});
