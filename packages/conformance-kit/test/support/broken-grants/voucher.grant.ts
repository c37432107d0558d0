import type { Type } from '@nestjs/common';
import { Matches } from 'class-validator';
import {
  type AttemptLimit,
  GrantBody,
  OAuthError,
  Optional,
  randomSecret,
  UUID,
} from 'customer-authorization-service/grant';
import type { Random } from '../../../src/fuzz/random.js';
import type { GrantKit } from '../../../src/grant-kit.js';
import { grantOf } from '../grant-of.js';

/** The codes of a correct grant, and how it limits the guesses. */
export interface VoucherForm {
  alphabet: string;
  length: number;
  /** Whether a long handle accompanies the code. Otherwise the code alone names the voucher. */
  hasHandle: boolean;
  /** Whether only the client that the voucher was created for gets a token. */
  boundToClient: boolean;
  attempts: AttemptLimit<VoucherBody>;
  lifetimeSeconds: number;
}

class VoucherBody extends GrantBody {
  @Matches(UUID)
  override organization_id!: string;

  code!: string;

  @Optional()
  @Matches(/^[\w-]{43}$/)
  handle?: string;
}

const ALPHABETS = ['12', 'A1', 'BCDFGHJKLM', 'abc123', '0123456789', 'ABCDEF0123456789', 'xyzXYZ'];
/** Fewer values than the rules of the kit create vouchers could not each have a code of its own. */
const MIN_CODE_COUNT = 100_000;
const WRONG_CODE_COUNT = 3;

export function randomVoucherForm(random: Random): VoucherForm {
  const alphabet = random.pick(ALPHABETS);
  const length = random.pick([3, 4, 5, 6, 8, 12, 20]);
  const mustHaveHandle = alphabet.length ** length < MIN_CODE_COUNT;
  // a short code needs a window that is not much shorter than its lifetime
  const isShort = alphabet.length ** length < 2 ** 32;
  const windowSeconds = random.pick(isShort ? [60, 600] : [2, 10, 60, 600]);
  const per = random.pick<AttemptLimit<VoucherBody>['per']>([['network'], ['client_id'], ['network', 'client_id']]);
  return {
    alphabet,
    length,
    hasHandle: mustHaveHandle || random.chance(0.5),
    boundToClient: random.chance(0.5),
    attempts: { per, limit: `${WRONG_CODE_COUNT}/${windowSeconds}` },
    lifetimeSeconds: isShort ? windowSeconds * random.pick([1, 5, 9]) : random.pick([30, 300, 86_400]),
  };
}

interface Voucher {
  clientId: string;
  organizationId: string;
  expiresAt: number;
}

/** A grant that is correct without a mistake. Its vouchers are in memory, for all processes. */
export function voucherGrant(form: VoucherForm, mistake?: string): { grant: Type; modules: Type[] } & GrantKit {
  const { alphabet, length, hasHandle, boundToClient, attempts, lifetimeSeconds } = form;
  const vouchers = new Map<string, Voucher>();
  const keyOf = ({ handle = '', code }: { handle?: string; code: string }) => `${handle}:${code}`;
  const newCode = () => Array.from({ length }, () => alphabet[Math.floor(secureRandom() * alphabet.length)]).join('');

  class FormBody extends VoucherBody {
    @Matches(new RegExp(`^[${alphabet}]{${length}}$`))
    override code!: string;
  }

  const provided = grantOf<FormBody>(
    'voucher',
    { body: FormBody, attempts },
    async ({ body, client }, customers, { clock }) => {
      const voucher = vouchers.get(keyOf(body));
      const isForeign = boundToClient && voucher?.clientId !== client.clientId;
      if (!voucher || isForeign) throw OAuthError.invalidGrant('no such voucher');
      if (voucher.organizationId !== body.organization_id && !mistake) throw OAuthError.invalidGrant('elsewhere');
      if (voucher.expiresAt <= clock.now()) throw OAuthError.invalidGrant('expired');
      if (!vouchers.delete(keyOf(body))) throw OAuthError.invalidGrant('used');
      return customers.create(body.organization_id);
    },
  );

  return {
    ...provided,
    valid: ({ clientId, organizationId, service: { clock } }) => {
      let voucher = { code: newCode(), ...(hasHandle && { handle: randomSecret('base64url') }) };
      while (vouchers.has(keyOf(voucher))) voucher = { ...voucher, code: newCode() };
      vouchers.set(keyOf(voucher), { clientId, organizationId, expiresAt: clock.now() + lifetimeSeconds * 1000 });
      return voucher;
    },
    singleUse: true,
    boundToClient,
    lifetime: lifetimeSeconds,
    endsWithCaller: false,
    endsWithSessions: false,
    guessable: { parameter: 'code', limit: WRONG_CODE_COUNT },
  };
}

const secureRandom = () => Number.parseInt(randomSecret('hex').slice(0, 12), 16) / 2 ** 48;
