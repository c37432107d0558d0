import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { alertRules, type Document } from '../../support/manifests.js';
import { groups, inputSeries, promtool, runPromtool, type Series } from '../../support/promtool.js';

interface AlertSeries {
  /** Series with one value per minute that make the alert fire, one case each. */
  fires: Series[][];
  /** Series of normal operation, one case each. */
  quiet: Series[][];
  /** The labels of the alert, in addition to those of its rule. */
  labels?: Record<string, string>;
  /** Labels of the firing series, if they are not those of production. */
  added?: Record<string, string>;
}

type Labels = Record<string, string>;
const steady = (metric: string, value: number, labels: Labels = {}): Series => [metric, labels, `${value}x40`];
const growing = (metric: string, step: number, labels: Labels = {}): Series => [metric, labels, `0+${step}x40`];
const requests = (surface: string, status: string, perMinute: number, route = '/route'): Series =>
  growing('http_requests_total', perMinute, { surface, status, route });
const durations = (inHalfASecond: number, labels: Labels): Series[] => [
  growing('http_request_duration_seconds_bucket', inHalfASecond, { ...labels, le: '0.5' }),
  growing('http_request_duration_seconds_bucket', 1_000, { ...labels, le: '1' }),
  growing('http_request_duration_seconds_bucket', 1_000, { ...labels, le: '+Inf' }),
];
const PUBLIC = { surface: 'public', route: '/v2/customer/token' };
const INTROSPECTION = { surface: 'management', route: '/oauth2/introspect' };
const MANY_REQUESTS = requests('public', '200', 100_000);

const REGISTRY_JOB = { cronjob: 'customer-authorization-registry' };

/** Labels that Prometheus adds to the samples of a pod. The alert has those of the pod at fault. */
const ODD = { instance: '10.0.0.1:3001', pod: 'odd' };
const OTHER = { instance: '10.0.0.2:3001', pod: 'other' };
const THIRD = { instance: '10.0.0.3:3001', pod: 'third' };

/** An alert on a value of a pod that does not change, or on the growth of a value per minute. */
const onValue = (metric: string, { fires, quiet }: { fires: number; quiet: number }): AlertSeries => ({
  fires: [[steady(metric, fires, ODD), steady(metric, quiet, OTHER)]],
  quiet: [[steady(metric, quiet, OTHER)]],
  labels: ODD,
});
const onGrowth = (metric: string): AlertSeries => ({
  fires: [[growing(metric, 1, ODD), growing(metric, 0, OTHER)]],
  quiet: [[growing(metric, 0, OTHER)]],
  labels: ODD,
});

const statements = (outcome: string, perMinute: number, pod: Labels) =>
  growing('cas_database_statements_total', perMinute, { outcome, ...pod });
const offset = (seconds: number, pod: Labels) => steady('cas_clock_offset_seconds', seconds, pod);

const CONFIGURATION = { issuer: 'https://auth.example', region: 'eu', keys: '0123456789ab', version: '2.0.0' };
/** A pod that has read a rotated key file at this minute. */
const upcoming = (minute: number, pod: Labels): Series => [
  'cas_signing_keys',
  { state: 'upcoming', ...pod },
  `0x${minute - 1} 1x${40 - minute}`,
];
const configured = (pod: Labels, other: Labels = {}) =>
  steady('cas_configuration_info', 1, { ...CONFIGURATION, ...pod, ...other });

/** For each alert of deploy/kubernetes: series that make it fire, and series that do not. */
const ALERT_SERIES: Record<string, AlertSeries> = {
  CustomerAuthorizationFailing: {
    fires: [
      // introspection fails, next to many requests of the public port, probes and scrapes
      [
        MANY_REQUESTS,
        requests('management', '503', 10, '/oauth2/introspect'),
        requests('management', '200', 5_000, '/health/ready'),
        requests('management', '200', 5_000, '/metrics'),
      ],
    ],
    quiet: [
      [MANY_REQUESTS, requests('public', '503', 500)],
      // pods that start respond to readiness probes with 503
      [requests('management', '503', 60, '/health/ready'), requests('management', '200', 10, '/oauth2/introspect')],
    ],
    labels: { surface: 'management' },
  },
  CustomerAuthorizationTokensRejected: {
    fires: [[MANY_REQUESTS, requests('management', '401', 10, '/oauth2/introspect')]],
    quiet: [
      [MANY_REQUESTS, requests('public', '401', 10_000)],
      [requests('management', '401', 2, '/oauth2/introspect')],
    ],
    labels: { surface: 'management' },
  },
  CustomerAuthorizationAbsent: {
    fires: [[steady('cas_registry_age_seconds', 1)]],
    quiet: [[steady('cas_registry_age_seconds', 1)]],
    added: { job: 'customer-authorization', namespace: 'customer-authorization-staging' },
  },
  CustomerAuthorizationPodWaiting: {
    fires: [
      [
        steady('process_start_time_seconds', 1, { instance: 'waiting' }),
        steady('process_start_time_seconds', 1, { instance: 'serving' }),
        steady('cas_registry_age_seconds', 1, { instance: 'serving' }),
      ],
    ],
    quiet: [
      [
        steady('process_start_time_seconds', 1, { instance: 'serving' }),
        steady('cas_registry_age_seconds', 1, { instance: 'serving' }),
      ],
    ],
    labels: { instance: 'waiting' },
  },
  CustomerAuthorizationProcessDown: {
    // one of two dead processes
    fires: [[steady('up', 0, ODD), steady('up', 1, OTHER), steady('cas_registry_age_seconds', 1, OTHER)]],
    quiet: [
      [steady('up', 1, ODD), steady('up', 1, OTHER)],
      // a restart
      [['up', ODD, '1x27 0x3'], steady('up', 1, OTHER)],
    ],
    labels: ODD,
  },
  CustomerAuthorizationPodWithoutDatabase: {
    fires: [
      [
        statements('done', 70, ODD),
        statements('unavailable', 30, ODD),
        statements('done', 100, OTHER),
        statements('unavailable', 0, OTHER),
      ],
    ],
    quiet: [[statements('done', 90, OTHER), statements('unavailable', 10, OTHER), statements('failed', 300, OTHER)]],
    labels: ODD,
  },
  CustomerAuthorizationClockDiffers: {
    fires: [
      [offset(-16, ODD), offset(14, OTHER)],
      [offset(300, ODD), offset(0, OTHER), offset(-1, THIRD)],
    ],
    quiet: [
      [offset(14, ODD), offset(-14, OTHER)],
      // the clock of the database is wrong
      [offset(300, ODD), offset(301, OTHER)],
    ],
    labels: ODD,
  },
  CustomerAuthorizationDatabaseClockDiffers: {
    fires: [[offset(-300, ODD), offset(-301, OTHER)], [offset(16, ODD)]],
    quiet: [[offset(300, ODD), offset(0, OTHER)]],
  },
  CustomerAuthorizationPodsDiffer: {
    fires: [
      [configured(ODD, { keys: 'other' }), configured(OTHER), configured(THIRD)],
      // the other pods have had the rotated key file for 10 minutes
      [
        ...[configured(ODD, { keys: 'other' }), configured(OTHER), configured(THIRD)],
        ...[upcoming(20, OTHER), upcoming(20, THIRD)],
      ],
    ],
    quiet: [
      [configured(ODD), configured(OTHER), configured(THIRD)],
      // a roll-out
      [configured(ODD, { version: '1.1.0' }), configured(OTHER)],
      // a rotated key file reached two pods 2 minutes ago
      [
        configured(ODD),
        ['cas_configuration_info', { ...CONFIGURATION, ...OTHER, keys: 'rotated' }, '_x27 1x12'],
        ['cas_configuration_info', { ...CONFIGURATION, ...THIRD, keys: 'rotated' }, '_x27 1x12'],
        ...[upcoming(28, OTHER), upcoming(28, THIRD)],
      ],
    ],
    labels: { ...CONFIGURATION, keys: 'other', ...ODD },
  },
  CustomerAuthorizationSlow: {
    // slow introspection, next to fast public requests
    fires: [[...durations(980, INTROSPECTION), ...durations(995, PUBLIC)]],
    quiet: [
      [...durations(995, INTROSPECTION), ...durations(995, PUBLIC)],
      // consumers of the feeds wait on purpose
      ...['/oauth2/revocations', '/oauth2/events'].map((route) => [
        ...durations(0, { ...INTROSPECTION, route }),
        ...durations(995, INTROSPECTION),
      ]),
    ],
    labels: { surface: 'management' },
  },
  CustomerAuthorizationReplays: {
    fires: [[growing('cas_code_redemptions_total', 1, { outcome: 'replayed' })]],
    quiet: [
      [growing('cas_code_redemptions_total', 1_000, { outcome: 'redeemed' })],
      [growing('cas_code_redemptions_total', 0.3, { outcome: 'replayed' })],
    ],
  },
  CustomerAuthorizationFileInvalid: {
    fires: [
      [
        steady('cas_file_invalid', 1, { file: 'SIGNING_KEYS_FILE', ...ODD }),
        steady('cas_file_invalid', 0, { file: 'SIGNING_KEYS_FILE', ...OTHER }),
      ],
    ],
    quiet: [[steady('cas_file_invalid', 0, { file: 'SIGNING_KEYS_FILE', ...OTHER })]],
    labels: { file: 'SIGNING_KEYS_FILE', ...ODD },
  },
  CustomerAuthorizationSigningKeysExpire: {
    fires: [[steady('cas_signing_key_seconds_left', 7_100)]],
    quiet: [[steady('cas_signing_key_seconds_left', 7_300)], [MANY_REQUESTS]],
  },
  CustomerAuthorizationDatabaseOverloaded: {
    fires: [
      [growing('cas_database_rejected_total', 1, ODD), growing('cas_database_rejected_total', 0, OTHER)],
      [steady('cas_database_waiting', 60, ODD), steady('cas_database_waiting', 40, OTHER)],
    ],
    quiet: [[growing('cas_database_rejected_total', 0, OTHER), steady('cas_database_waiting', 40, OTHER)]],
    labels: ODD,
  },
  CustomerAuthorizationOffboardingNotEnded: {
    ...onValue('cas_offboarding_age_seconds', { fires: 100_801, quiet: 100_799 }),
    labels: {}, // all pods report the same
  },
  CustomerAuthorizationRegistryStale: onValue('cas_registry_age_seconds', { fires: 61, quiet: 59 }),
  CustomerAuthorizationRegistryNotApplied: {
    fires: [
      [
        steady('kube_cronjob_status_last_successful_time', 500, REGISTRY_JOB),
        steady('kube_cronjob_created', 0, REGISTRY_JOB),
      ],
      [steady('kube_cronjob_created', 500, REGISTRY_JOB)],
    ],
    quiet: [
      // the last success 15 minutes ago
      [
        steady('kube_cronjob_status_last_successful_time', 900, REGISTRY_JOB),
        steady('kube_cronjob_created', 0, REGISTRY_JOB),
      ],
      [steady('kube_cronjob_created', 900, REGISTRY_JOB)],
      [steady('kube_cronjob_status_last_successful_time', 0, { cronjob: 'customer-authorization-purge' })],
    ],
    added: { job: 'kube-state-metrics', namespace: 'customer-authorization' },
  },
  CustomerAuthorizationRevocationsNotPublished: onValue('cas_revocation_feed_lag_seconds', { fires: 30, quiet: 1 }),
  CustomerAuthorizationManyRevocations: {
    fires: [
      [
        steady('cas_revocation_feed_entries', 400_001, { instance: 'one' }),
        steady('cas_revocation_feed_entries', 300_000, { instance: 'two' }),
      ],
    ],
    // each process reports the entries of all processes
    quiet: [
      [
        steady('cas_revocation_feed_entries', 400_000, { instance: 'one' }),
        steady('cas_revocation_feed_entries', 400_000, { instance: 'two' }),
      ],
    ],
  },
  CustomerAuthorizationLogLinesLost: onGrowth('cas_log_lines_lost_total'),
  CustomerAuthorizationEventLoopBlocked: onValue('nodejs_eventloop_lag_p99_seconds', { fires: 0.3, quiet: 0.1 }),
};

const PRODUCTION = { job: 'customer-authorization', namespace: 'customer-authorization' };
const STAGING = { ...PRODUCTION, namespace: 'customer-authorization-staging' };
/** Later than the longest `for` and the longest range of the rules together. */
const EVALUATED_AT = '30m';

/** A test of one alert for promtool: whether the series make it fire. */
function testOf(alert: string, series: Series[], added: Record<string, string>, firing: AlertSeries | undefined) {
  const rule = alertRules.find((each) => each.alert === alert) as Document;
  const exp_alerts = firing
    ? [{ exp_labels: { ...rule.labels, ...PRODUCTION, ...firing.labels }, exp_annotations: rule.annotations }]
    : [];
  return {
    interval: '1m',
    input_series: series.map(([metric, labels, values]) => inputSeries([metric, { ...labels, ...added }, values])),
    alert_rule_test: [{ eval_time: EVALUATED_AT, alertname: alert, exp_alerts }],
  };
}

describe('the alerts', () => {
  it('name the job and the namespace in one place, which every alert uses', () => {
    const text = stringify(groups);
    expect(text.match(/namespace: |namespace[=!]/g)).toHaveLength(1);
    expect(text.match(/\bjob: |\bjob[=!]/g)).toHaveLength(1);
    for (const { expr } of alertRules) expect(expr).toContain('customer_authorization:watched');
  });

  it('each have series that make them fire and series that do not', () => {
    expect(Object.keys(ALERT_SERIES).sort()).toEqual(alertRules.map(({ alert }) => alert).sort());
  });

  describe.skipIf(promtool === undefined)('in promtool (skipped without the program promtool)', () => {
    it.each(Object.entries(ALERT_SERIES))('%s fires for its series', (alert, cases) => {
      runPromtool(cases.fires.map((series) => testOf(alert, series, cases.added ?? PRODUCTION, cases)));
    });

    it.each(Object.entries(ALERT_SERIES))('%s does not fire for normal operation', (alert, cases) => {
      runPromtool(cases.quiet.map((series) => testOf(alert, series, PRODUCTION, undefined)));
    });

    it.each(Object.entries(ALERT_SERIES).filter(([, { added }]) => added?.namespace !== STAGING.namespace))(
      '%s does not fire for the same series of staging',
      (alert, { fires, added }) =>
        runPromtool(fires.map((series) => testOf(alert, series, { ...added, ...STAGING }, undefined))),
    );
  });
});
