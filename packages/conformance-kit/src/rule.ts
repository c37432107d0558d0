import type { GrantMetadata } from 'customer-authorization-service/testing-host';
import type { GrantKit } from './grant-kit.js';
import type { GrantTestContext } from './grant-test-context.js';
import type { RuleFor } from './test-context.js';

/** A rule for grants. */
export type Rule = RuleFor<GrantTestContext>;

/** The rules on one subject that apply to a grant. */
export type RuleSet = (declared: GrantMetadata, kit: GrantKit) => Rule[];
