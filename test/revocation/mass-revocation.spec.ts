import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { MAX_ENTRIES } from '../../src/feed/feed-entries.js';
import { MAX_WAITING_ENTRIES } from '../../src/feed/feed-store.js';
import { DEFAULT_LIMITS } from '../../src/platform/configuration/rate-limit-rule.js';
import { keysOfSite } from '../../src/platform/network.js';

const page = readFileSync(join(import.meta.dirname, '../../docs/security.md'), 'utf8');
const section = page.split('\n### Mass revocation\n')[1]?.split('\n### ')[0] as string;
/** A day is the longest lifetime of a token. Each entry stays for 120 s longer. */
const ENTRY_SECONDS = 86_400 + 120;

const text = (value: number) => value.toLocaleString('en-US');

/** The entries of one network that can be in force: those of each window that an entry's time can overlap. */
function entriesOfNetwork(entrySeconds: number): number {
  const { count, seconds } = DEFAULT_LIMITS.revocations;
  return (Math.ceil(entrySeconds / seconds) + 1) * count;
}

describe('the numbers of docs/security.md about mass revocation', () => {
  it('follow from the limit of one network', () => {
    const ofNetwork = entriesOfNetwork(ENTRY_SECONDS);
    expect(section).toContain(`| one IPv4 address or IPv6 /56 | ${text(ofNetwork)} per process; `);
    expect(section).toContain(`| ${keysOfSite('2001:db8::1').at(-1)?.factor} times as many |`);
    expect(section.replaceAll(/\s+/g, ' ')).toContain(`with ${Math.ceil(MAX_ENTRIES / ofNetwork)} or more addresses`);
  });

  it('have the minutes after which one agent reaches the alert and the default of each verifier', () => {
    const { count, seconds } = DEFAULT_LIMITS.tokens;
    const minutesUntil = (entries: number) => Math.round((entries / count) * (seconds / 60));
    const plain = section.replaceAll(/\s+/g, ' ');
    expect(plain).toContain(`can send ${text(count)} \`end_sessions\` in ${seconds} s`);
    expect(plain).toContain(`After about ${minutesUntil(400_000)} minutes an alert fires`);
    expect(plain).toContain(`After about ${Math.ceil(5_000_000 / count)} minutes the default list`);
  });

  it('are below the default of each verifier', () => {
    expect(section).toContain(`| all networks and clients together | ${text(MAX_ENTRIES)}, `);
    const [, maxEntries = ''] = /\| the default `maxEntries` of a verifier \| ([\d,]+) \|/.exec(section) ?? [];
    const options = readFileSync(join(import.meta.dirname, '../../packages/token-verifier/src/options.ts'), 'utf8');
    expect(options).toContain(`maxEntries = ${maxEntries.replaceAll(',', '_')} `);
    expect(MAX_ENTRIES + MAX_WAITING_ENTRIES).toBeLessThan(Number(maxEntries.replaceAll(',', '')));
  });
});
