import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { shellBlocksOf } from '../support/page-blocks.js';

const [definition = '', emergency = ''] = shellBlocksOf('docs/kubernetes.md', '### Change a Secret');

/** Does what the function asks of kubectl. The Secret is a file, and so is the value of the store. */
const CLUSTER = `
k() {
  echo "$*" >> calls
  case "$*" in
    *ownerReferences*) [ -f secret ] && cat owner ;;
    'get secret'*) base64 < secret ;;
    'annotate externalsecret'*) cp store secret ;;
    'create secret'*) cat "\${5#--from-file=}" ;;
    apply*) cat > secret ;;
  esac
}
sleep() { cp right store; k annotate externalsecret; }
`;

describe('change_secret of docs/kubernetes.md', () => {
  let cwd: string;
  const write = (files: Record<string, string>) => {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(cwd, name), text);
  };
  const read = (name: string) => readFileSync(join(cwd, name), 'utf8');
  const run = (commands: string) =>
    execFileSync('bash', ['-uc', `${CLUSTER}${definition}${commands}`], { cwd, input: '\n', stdio: 'pipe' });
  beforeEach(() => {
    cwd = mkdtempSync(join(tmpdir(), 'change-secret-'));
  });
  afterEach(() => rmSync(cwd, { recursive: true }));

  it('applies a plain Secret, and then refreshes the pods', () => {
    write({ secret: 'old', owner: '', 'keys.json': 'new' });
    run('change_secret signing-keys keys.json');
    expect(read('secret')).toBe('new');
    expect(read('calls')).toMatch(/^annotate pods .*\n$/m);
    expect(read('calls')).not.toContain('externalsecret');
  });

  it('waits until the Secret of the External Secrets Operator has the content, and never applies it', () => {
    write({ secret: 'old', owner: 'ExternalSecret', store: 'old', right: 'new', 'keys.json': 'new\n' });
    run('change_secret signing-keys keys.json');
    expect(read('secret')).toBe('new');
    expect(read('calls')).toContain('{.data.keys\\.json}');
    expect(read('calls')).not.toContain('apply');
    expect(read('calls').trim().split('\n').at(-1)).toContain('annotate pods');
  });

  it('changes nothing if the Secret cannot be read', () => {
    write({ 'keys.json': 'new' });
    expect(() => run('change_secret signing-keys keys.json')).toThrow();
    expect(read('calls').trim().split('\n')).toHaveLength(1);
  });

  it('changes nothing if the file is empty, for example because the Secret could not be read before', () => {
    write({ secret: 'old', owner: '', 'keys.json': '' });
    expect(() => run('change_secret signing-keys keys.json')).toThrow();
    expect(read('secret')).toBe('old');
  });

  it.each(['alice:a\nmallory:m\nbob:b\n', 'alice:a,mallory:m,bob:b', 'mallory:m, alice:a\nbob:b'])(
    'removes the token of one operator in an emergency: %j',
    (tokens) => {
      write({ secret: tokens, owner: '' });
      run(emergency);
      expect(
        read('secret')
          .split('\n')
          .map((line) => line.trim())
          .filter(Boolean),
      ).toEqual(['alice:a', 'bob:b']);
    },
  );
});
