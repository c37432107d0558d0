// @ts-check
/**
 * `npm run check:advisories`: asks the registry for advisories about the packages of the service. Exits with 1 if there
 * are any, and with 2 if the registry does not respond or has no such service: then nothing was checked.
 */
import { spawnSync } from 'node:child_process';

const TIMEOUT_MS = 60_000;
const NOT_CHECKED_STATUS = 2;
/** Offline, npm reports no advisories without a request, so the configuration of a user must not decide that. */
const ONLINE = ['--offline=false', '--audit=true'];

/**
 * @typedef {object} AuditReport
 * @property {string} [message] why there is no report
 * @property {Record<string, { severity: string, range: string, via: (string | { title: string, url: string })[] }>}
 * [vulnerabilities]
 */

const { stdout, status, error } = spawnSync('npm', ['audit', '--omit=dev', '--json', '--fetch-retries=1', ...ONLINE], {
  encoding: 'utf8',
  timeout: TIMEOUT_MS,
  stdio: ['ignore', 'pipe', 'ignore'],
});
const report = parse(stdout);
if (report?.vulnerabilities === undefined) {
  const reason = report?.message ?? error?.message ?? `npm audit ended with ${status}`;
  console.error(`advisories were not checked: the registry did not respond as expected (${reason})`);
  process.exitCode = NOT_CHECKED_STATUS;
} else {
  const found = Object.entries(report.vulnerabilities);
  for (const [name, { severity, range, via }] of found) {
    const advisories = via.map((each) => (typeof each === 'string' ? each : `${each.title} ${each.url}`));
    console.error(`${name} ${range}: ${severity}: ${advisories.join('; ')}`);
  }
  console.log(`${found.length} packages with advisories`);
  process.exitCode = found.length > 0 ? 1 : 0;
}

/** @param {string} text @returns {AuditReport | undefined} */
function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
