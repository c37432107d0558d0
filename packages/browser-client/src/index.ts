export { errorText } from './error-text.js';
export { endToken, leaveThisBrowser, logOutEverywhere, logOutMovedDevices } from './leave.js';
export {
  approveMove,
  exchangeOnce,
  type FinishOptions,
  type Move,
  NewBrowser,
  type NewDevice,
  type TokenSource,
} from './move.js';
export { request, type TokenResponse } from './request.js';
export { RequestError } from './request-error.js';
export { closeRoom, openRoom, type ReceiveOptions, type Room, receiveMove, sendMove } from './room.js';
export { resumeSignIn, type SignInOptions, type SignInResult, signIn, signOut } from './sign-in.js';
export { TokenClient, type TokenClientOptions } from './token-client.js';
export { challengeOf, codeOf, createVerifier, VERIFIER_TTL_MS } from './verifier.js';
