/** The advisory lock that makes processes start at one moment: the test holds it, they wait to share it. */
export const START_LOCK = 7302;
