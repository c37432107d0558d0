import {
  errorText,
  NewBrowser,
  RequestError,
  type SignInResult,
  signIn,
  TokenClient,
  type TokenResponse,
} from '@customer-authorization/browser-client';

declare global {
  interface Window {
    signIn(backendUrl: string): Promise<SignInResult>;
    receive(transferToken: string): Promise<TokenResponse>;
  }
}

const {
  url = '',
  clientId = '',
  organizationId = '',
  groupId,
} = Object.fromEntries(new URLSearchParams(location.search));
const tokens = new TokenClient({ url, clientId, organizationId, groupId });
const device = new NewBrowser(tokens);
window.signIn = (backendUrl) => signIn(tokens, backendUrl, { link: false });
window.receive = (transferToken) => device.finishMove(transferToken, { replace: true });

function textOf(error: unknown): string {
  if (!(error instanceof RequestError)) return errorText(error);
  const seconds: number | undefined = error.retryAfterSeconds;
  return `${error.status} ${error.error} ${seconds ?? ''}`;
}

const output = document.querySelector('output') as HTMLOutputElement;
tokens.entityId().then(
  (entityId: string) => {
    output.value = entityId;
  },
  (error: unknown) => {
    output.value = textOf(error);
  },
);
