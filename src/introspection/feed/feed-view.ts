import type { PublishedRevocation } from '../../access-token/feed/revocation-pages.js';

/** The part of the feed that a caller sees. The operator sees everything. */
export const FEED_VIEWS = ['all', 'customer-api', 'agent-api', 'none'] as const;
export type FeedView = (typeof FEED_VIEWS)[number];

/**
 * The view of a resource server. Customer tokens also descend from agents' tokens, so that the view of `customer-api`
 * contains that of `agent-api`.
 */
export function viewOf(audiences: string[]): FeedView {
  if (audiences.includes('customer-api')) return 'customer-api';
  return audiences.includes('agent-api') ? 'agent-api' : 'none';
}

/** Whether a revocation can end a token of the view's audiences. */
export function isVisibleIn(view: FeedView, { audience }: PublishedRevocation): boolean {
  if (view === 'all') return true;
  if (view === 'none' || audience === 'none') return false;
  return view === 'customer-api' || audience !== 'customer-api';
}
