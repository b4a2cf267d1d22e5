"""Is a server sound: checks of its protocol, sampling, template, weights and conduct under load, and their report.

Enter by `probe.probe`; each check is a small function of a `subject.Subject`. Asks servers, and grades nothing.
"""
