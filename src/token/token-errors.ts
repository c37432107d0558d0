import { GROUP_ID_RULE } from '../customer/customer.js';
import { OAuthError } from '../oauth/oauth-error.js';

export const TOKEN_ERRORS = {
  grant: () => OAuthError.unauthorizedClient('grant_type: not for this client'),
  organization: () => OAuthError.invalidRequest('organization_id: must be the organization of the agent'),
  organizationOfPath: () => OAuthError.invalidRequest('organization_id: must equal the organization of the path'),
  groupId: () => OAuthError.invalidRequest(`group_id: ${GROUP_ID_RULE}`),
  noGroups: () => OAuthError.invalidRequest('grant_type: not supported by the route of a group'),
  sharedGroups: () => OAuthError.unauthorizedClient('group_id: the groups of this organization share one identity'),
};
