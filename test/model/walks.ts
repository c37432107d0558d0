import fc from 'fast-check';
import * as actions from './actions.js';
import { Chooser, GROUPS, MAX_NUMBER, NoChoiceError, NUMBER_COUNT } from './choices.js';
import { COMMANDS } from './commands.js';
import type { AgentSession, Client, Session } from './things.js';
import type { Walk } from './walk.js';

/** Redeems the code of a session, or uses its refresh token. */
async function use(walk: Walk, session: Session | AgentSession): Promise<void> {
  if (session.kind === 'code' && session.code !== '')
    await ('agent' in session ? actions.redeemOfAgent(walk, session) : actions.redeem(walk, session));
  const refreshToken = session.refreshTokens.at(-1);
  if (refreshToken) await actions.refresh(walk, session, refreshToken);
}

/** Tries what a command has ended. The check of each step cannot, because a use has side effects. */
async function useEnded(walk: Walk, session: Session | AgentSession): Promise<void> {
  await use(walk, session);
  if ('agent' in session || !session.browser) return;
  const { browser, customer } = session;
  await actions.visit(walk, walk.clients[0] as Client, customer.organization, customer.group, browser);
}

const numbers = fc.array(fc.nat(MAX_NUMBER), { minLength: NUMBER_COUNT, maxLength: NUMBER_COUNT });
const names = fc.oneof(...[...COMMANDS].map(([name, { weight }]) => ({ arbitrary: fc.constant(name), weight })));

/** The name of a command, and the numbers that choose its arguments. */
export type Step = [name: string, numbers: number[]];

/** Walks of up to so many commands. */
export const walks = (maxLength: number) => fc.array<Step>(fc.tuple(names, numbers), { maxLength, size: 'max' });

export async function run(walk: Walk, [name, choices]: Step): Promise<void> {
  const { model } = walk;
  const choose = new Chooser(walk, choices);
  const unusable = new Set(model.allSessions().filter((session) => model.whyNotUsable(session)));
  try {
    await COMMANDS.get(name)?.run(walk, choose);
  } catch (error) {
    if (!(error instanceof NoChoiceError)) throw error;
  }
  const ended = model
    .allSessions()
    .filter((session) => !unusable.has(session) && model.whyNotUsable(session))
    .filter(({ kind, expiresAt }) => kind !== 'token' && expiresAt > model.now);
  if (ended.length === 0 || !choose.chance(70)) return;
  for (const session of new Set([choose.one(ended), choose.one(ended), ...ended.slice(-1)]))
    await useEnded(walk, session);
}

/** Uses everything that is left, so that what has no view without side effects is tried, too. */
export async function tryEverything(walk: Walk): Promise<void> {
  const { model } = walk;
  for (const session of model.allSessions()) await use(walk, session);
  for (const customer of [...model.customers])
    if (customer.user !== undefined && model.customerOf(customer.organization, customer.user) === customer)
      await actions.signIn(walk, customer.organization, customer.user, { remember: false, link: false });
  for (const browser of [...model.browsers])
    for (const organization of walk.organizations)
      for (const group of new Set(GROUPS))
        if (model.leadingTo(browser, organization, group) || group === '')
          await actions.visit(walk, walk.clients[0] as Client, organization, group, browser);
}
