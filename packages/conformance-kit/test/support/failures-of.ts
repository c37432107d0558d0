import type { Type } from '@nestjs/common';
import { GrantSubject, grantMetadataOf } from '../../src/grant-subject.js';
import type { GrantKit, RouteKit } from '../../src/kit.js';
import { RouteSubject } from '../../src/route-subject.js';
import type { Rule } from '../../src/rule.js';
import { grantRules, routeRules } from '../../src/rules/all.js';
import type { Subject } from '../../src/subject.js';

export type TestedGrant = { grant: Type } & GrantKit;
export type TestedRoute = { route: string } & RouteKit;

/** A grant or a route in a service that runs. */
export interface Opened {
  subject: Subject;
  /** The rules for its test, in which an option may be omitted. */
  rules(omitted?: string): Rule<Subject>[];
}

export async function open(tested: TestedGrant | TestedRoute): Promise<Opened> {
  return 'grant' in tested ? openGrant(tested) : openRoute(tested);
}

async function openGrant({ grant, ...kit }: TestedGrant): Promise<Opened> {
  const subject = await GrantSubject.open(grant, kit);
  const rules = (omitted?: string) => grantRules(grantMetadataOf(grant), without(kit, omitted));
  return { subject, rules: rules as Opened['rules'] };
}

async function openRoute({ route, ...kit }: TestedRoute): Promise<Opened> {
  const subject = await RouteSubject.open(route, kit);
  const rules = (omitted?: string) => routeRules(route, without(kit, omitted));
  return { subject, rules: rules as Opened['rules'] };
}

/** The failure of the only rule with a text in its title. */
export async function failureOf({ subject, rules }: Opened, text: string, omitted?: string): Promise<string> {
  const [rule, ...others] = rules(omitted).filter(({ title }) => title.includes(text));
  if (!rule || others.length > 0) throw new Error(`${others.length + (rule ? 1 : 0)} rules with ${text}`);
  return (await messageOf(subject.check(rule))) ?? 'the rule passed';
}

/** The failures of all rules, by their titles. */
export async function failuresOf(tested: TestedGrant | TestedRoute): Promise<Record<string, string>> {
  const { subject, rules } = await open(tested);
  const failures: Record<string, string> = {};
  const note = async (title: string, work: Promise<unknown>) => {
    const message = await messageOf(work);
    if (message !== undefined) failures[title] = message;
  };
  try {
    await note('prepare', subject.prepare());
    for (const rule of rules()) await note(rule.title, subject.check(rule));
    return failures;
  } finally {
    await subject.close();
  }
}

const without = <Kit extends object>(kit: Kit, omitted?: string): Kit => ({
  ...kit,
  ...(omitted !== undefined && { [omitted]: undefined }),
});

const messageOf = (work: Promise<unknown>): Promise<string | undefined> =>
  work.then(
    () => undefined,
    (error: Error) => error.message,
  );
