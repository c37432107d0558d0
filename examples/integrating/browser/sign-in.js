import { leaveThisBrowser, signIn, signOut } from 'browser-client';
import { tokens } from './chat.js';

const BACKEND_URL = ''; // the routes `/assertion` and `/sign-out` at the origin of the page
const NOTE = 'is-signed-in';

/** Call it after each sign-in to your site, and reload the page then. */
export async function signInToChat() {
  await signIn(tokens, BACKEND_URL);
  localStorage.setItem(NOTE, 'yes');
}

/** Call it when a page loads, before its first token request. If it rejects, show the error and no chat. */
export async function resumeSignIn() {
  if (!localStorage.getItem(NOTE)) return; // a visitor, who keeps the chat
  try {
    await signIn(tokens, BACKEND_URL);
  } catch (error) {
    if (error.error !== 'signed_out') throw error;
    await leaveThisBrowser(tokens); // the session has ended without a sign-out
    localStorage.removeItem(NOTE);
  }
}

/** Call it when the user signs out, and reload the page then. */
export async function signOutOfChat() {
  await signOut(tokens, BACKEND_URL);
  localStorage.removeItem(NOTE);
}
