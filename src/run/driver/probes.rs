//! Questions to the world: health, owners of ports, processes below a server, one token.

use std::collections::{BTreeMap, VecDeque};

use super::super::engine_watch::{Engine, Sample};
use super::super::event::{Answer, Event, Proc, Target};
use super::super::ports::{self, Owner};
use super::super::{health, procfs, smoke};
use super::{Driver, Message};
use crate::plan::node::http_url;

impl Driver<'_> {
    /// An answer from a port of ours counts when the listener is ours. Owners that were looked up are kept in `known`.
    pub(super) fn checked(
        &mut self,
        target: Target,
        answer: Answer,
        known: &mut BTreeMap<Target, Owner>,
    ) -> Answer {
        if !answer.is_http() || self.ours.contains(&target) {
            return answer;
        }
        let place = match target {
            Target::Endpoint(index) => {
                let own = self
                    .machine
                    .plan()
                    .endpoints
                    .get(index)
                    .and_then(|one| one.own);
                own.and_then(|own| self.spec.workers.get(own))
                    .and_then(|worker| health::Target::parse(&worker.health_url).ok())
                    .map(|target| (target.host, target.port))
            }
            Target::Router => self
                .spec
                .router
                .as_ref()
                .map(|router| (router.address.clone(), router.port)),
        };
        let Some((host, port)) = place else {
            return answer;
        };
        match known
            .entry(target)
            .or_insert_with(|| ports::owner(&host, port, self.spec.slurm_job()))
        {
            Owner::Stranger(who) => Answer::Stranger(who.clone()),
            Owner::Ours => {
                self.ours.insert(target);
                answer
            }
            Owner::Unknown => answer,
        }
    }

    pub(super) fn probe_id(&self, target: Target) -> usize {
        match target {
            Target::Endpoint(index) => index,
            Target::Router => self.machine.plan().endpoints.len(),
        }
    }

    pub(super) fn asked(&self, target: Target) -> Option<(usize, health::Target)> {
        let parsed = match target {
            Target::Endpoint(index) => {
                let plan = self.machine.plan().endpoints.get(index)?;
                let own = plan.own.and_then(|own| self.spec.workers.get(own));
                let other = self
                    .spec
                    .all_workers
                    .iter()
                    .find(|one| one.name == plan.name);
                let url = own
                    .map(|one| &one.health_url)
                    .or(other.map(|one| &one.health_url))?;
                health::Target::parse(url)
            }
            Target::Router => match (&self.spec.router, &self.spec.router_address) {
                (Some(router), _) => {
                    let url = format!(
                        "{}{}",
                        http_url(&router.address, router.port),
                        router.readiness
                    );
                    // Our own, started this moment: a second's wait here would be a second of every GPU.
                    health::Target::parse(&url).map(|target| target.or("/v1/models").eagerly())
                }
                (None, Some(router)) => health::Target::parse(&format!(
                    "{}/readiness",
                    http_url(&router.address, router.port)
                )),
                (None, None) => return None,
            },
        };
        match parsed {
            Ok(parsed) => Some((self.probe_id(target), parsed)),
            Err(why) => {
                tracing::error!("cannot check the health of {why}");
                None
            }
        }
    }

    /// A look at the processes below a server.
    pub(super) fn sample(&self, server: usize) -> Option<Sample> {
        let proc = Proc::Server(server);
        let group = self.groups.get(&proc).filter(|group| !group.reaped())?;
        let log = self.logs.get(&proc)?;
        let own = procfs::executable(group.pid())?;
        let all = procfs::all();
        let below = procfs::descendants(group.pid(), &all);
        let mut sample = Sample {
            silent_for: log.silent_for(),
            ..Sample::default()
        };
        for one in below
            .iter()
            .chain(all.iter().filter(|one| one.pid == group.pid()))
        {
            let below = one.pid != group.pid();
            if one.alive() {
                sample.read_bytes += procfs::bytes_read(one.pid);
                sample.cpu += procfs::ticks(one.ticks);
                sample.disk_wait |= one.state == 'D';
                if below {
                    sample.youngest = sample.youngest.max(one.start);
                }
            }
            let engine = !one.alive() || procfs::executable(one.pid).as_ref() == Some(&own);
            if below && engine {
                sample.engines.push(Engine {
                    id: (one.pid, one.start),
                    dead: (!one.alive()).then_some(one.status),
                });
            }
        }
        Some(sample)
    }

    pub(super) fn smoke(&self, events: &mut VecDeque<Event>) {
        let base = self.spec.client_url().unwrap_or_default();
        let (sender, limit) = (self.sender.clone(), self.spec.limits.smoke);
        let thread = std::thread::Builder::new().name("smoke".to_owned());
        let started = thread.spawn(move || {
            let result = smoke::one_token(&base, limit);
            // Nobody waits for it any more when the rank is being ended.
            let _ = sender.send(Message::Smoke(result));
        });
        if let Err(error) = started {
            events.push_back(Event::Smoke(Err(error.to_string())));
        }
    }
}
