import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { type RevocableClaims, rootOf, type TokenLineage } from '../access-token/token-lineage.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock, dayOf } from '../platform/clock.js';
import { selectIn } from '../platform/database/in-transaction.js';
import { type EntityRow, selectStatement } from '../platform/database/statement.js';
import { timeOfUuid } from '../platform/uuid.js';
import type { BrowserLink } from './browser-link.entity.js';
import { CustomerDataParticipants, type CustomerDevice } from './customer-data-participants.js';
import { claimsOfLink, copiesOf, LINK_IS_REVOKED, LINK_LEADS, type LinkKey, unlink } from './links.js';

/** The number of live devices of one customer that descend from one token. */
const MAX_DEVICES_PER_ROOT = 10;
/** The number of live devices of one kind of one customer. */
const MAX_DEVICES_PER_KIND = 100;
/** How long a client waits before it may try again. Nothing but the end of a device makes room. */
const RETRY_AFTER_SECONDS = 60;

/** The conditions are the columns of an index, so that links from sign-ins are not read. */
const FROM_TRANSFERS = `FROM browser_customer link JOIN customer ON customer.entity_id = link.entity_id
    WHERE link.entity_id = ? AND link.organization_id = customer.organization_id AND link.origin = 'transfer'`;

/** A link and its copies are one device. */
const FIND_LINKS = selectStatement<
  [entityId: string, today: number],
  EntityRow<BrowserLink, 'browser_id' | 'began_in' | 'generation' | 'seen_day' | 'root' | 'lineage'>
>(`SELECT MIN(link.browser_id) AS browser_id, link.began_in, MIN(link.generation) AS generation, MAX(link.seen_day) AS seen_day,
      MIN(link.root) AS root, MIN(link.lineage) AS lineage
    ${FROM_TRANSFERS} AND ${LINK_LEADS}
    GROUP BY link.began_in`);

/** The number of links that one statement reads. */
const LINKS_PER_SELECT_COUNT = 500;

/**
 * Links from transfers that have ended, so that reads of a customer's links are bounded. Those of a customer whose
 * browsers `end_sessions` has ended are not among them: their browsers may lose their secrets.
 */
const FIND_ENDED_LINKS = selectStatement<[entityId: string], LinkKey>(
  `SELECT link.browser_id AS browserId, link.entity_id AS entityId ${FROM_TRANSFERS}
      AND link.generation >= customer.link_generation
      AND (link.generation < customer.generation OR ${LINK_IS_REVOKED}) LIMIT ${LINKS_PER_SELECT_COUNT}`,
);

/** Limits the devices that a customer, and a thief of one of its tokens, can make (protocol §3.10). */
@Injectable()
export class CustomerDevices {
  constructor(
    private readonly clock: Clock,
    private readonly participants: CustomerDataParticipants,
  ) {}

  /**
   * Removes a device if the customer has too many. The caller has changed the customer's row in the transaction.
   *
   * @param lineage of the new device. Devices with a lower generation have ended
   * @throws OAuthError `temporarily_unavailable` if the transferring token may not replace a device
   */
  async makeRoom(
    manager: EntityManager,
    kind: CustomerDevice['kind'],
    entityId: string,
    lineage: TokenLineage,
  ): Promise<void> {
    const all = await this.linksOf(manager, entityId);
    for (const own of this.participants.own) all.push(...((await own.devices?.(manager, entityId)) ?? []));
    const devices = all.filter(({ claims: { gen = 0 } }) => gen >= lineage.gen);
    const removed = await makeRoomForRoot(manager, devices, lineage);
    const ofKind = devices.filter((device) => device.kind === kind && device !== removed);
    if (ofKind.length >= MAX_DEVICES_PER_KIND) await longestUnused(ofKind)?.remove(manager);
  }

  private async linksOf(manager: EntityManager, entityId: string): Promise<CustomerDevice[]> {
    await unlink(manager, await selectIn(manager, FIND_ENDED_LINKS, [entityId]));
    const rows = await selectIn(manager, FIND_LINKS, [entityId, dayOf(this.clock.now())]);
    return rows.map(({ browser_id: browserId, began_in, root, seen_day, generation, lineage }) => ({
      kind: 'link',
      root,
      addedAt: timeOfUuid(began_in),
      usedAt: seen_day,
      claims: claimsOfLink({ entityId, generation, lineage }) as RevocableClaims,
      remove: async (inManager) => unlink(inManager, await copiesOf(inManager, [browserId], [entityId])),
    }));
  }
}

/** @returns the device that was removed */
async function makeRoomForRoot(
  manager: EntityManager,
  devices: CustomerDevice[],
  lineage: TokenLineage,
): Promise<CustomerDevice | undefined> {
  const root = rootOf(lineage);
  if (root === undefined) return undefined;
  const ofRoot = devices.filter((device) => device.root === root);
  if (ofRoot.length < MAX_DEVICES_PER_ROOT) return undefined;
  const transferringToken = lineage.ancestors?.at(-1) as string;
  const oldest = ofRoot
    .filter(({ claims }) => claims.ancestors?.includes(transferringToken))
    .sort((one, other) => one.addedAt - other.addedAt)[0];
  if (!oldest) throw OAuthError.rateLimited(RETRY_AFTER_SECONDS, 'devices');
  await oldest.remove(manager);
  return oldest;
}

/** Of the devices with the most frequent root, the one that was used longest ago. */
function longestUnused(devices: CustomerDevice[]): CustomerDevice | undefined {
  const groups = new Map<string | null, CustomerDevice[]>();
  for (const device of devices) groups.set(device.root, [...(groups.get(device.root) ?? []), device]);
  const largest = Math.max(...[...groups.values()].map(({ length }) => length));
  const candidates = [...groups.values()].filter(({ length }) => length === largest).flat();
  return candidates.sort((one, other) => one.usedAt - other.usedAt)[0];
}
